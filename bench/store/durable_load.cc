#include "store/durable_load.h"

#include "base/check.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::store {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

LoadResult summary(std::vector<double> latencies, double total_milliseconds) {
  std::ranges::sort(latencies);
  const std::size_t count = latencies.size();
  LoadResult out;
  out.writes_per_second = static_cast<double>(count) * 1000 / total_milliseconds;
  out.p50_milliseconds = latencies[count / 2];
  out.p99_milliseconds = latencies[count * 99 / 100];
  out.max_milliseconds = latencies.back();
  return out;
}

}  // namespace

Poster BenchLoop::poster() {
  return [this](Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  };
}

void BenchLoop::run_until(const std::function<bool()>& done) {
  while (!done()) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return !tasks_.empty(); });
    std::deque<Task> tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (Task& task : tasks) task();
  }
}

std::string lease_key(int lease) {
  return fmt::format("/registry/leases/kube-node-lease/node-{:06}", lease);
}

Value lease_value(std::size_t bytes, int renewal) {
  std::string text = fmt::format("{{\"kind\":\"Lease\",\"renewal\":{},\"padding\":\"", renewal);
  text.resize(bytes, 'x');
  return std::make_shared<const std::string>(std::move(text));
}

void create_leases(Store& store, BenchLoop& loop, const Load& load) {
  int stored = 0;
  int sent = 0;
  while (stored < load.leases) {
    for (; sent < load.leases && sent - stored < 4'000; ++sent) {
      store.write(Write{lease_key(sent), lease_value(load.value_bytes, 0), std::nullopt},
                  [&](Result<WriteResult> result) {
                    SPILLWAY_CHECK(result.has_value());
                    ++stored;
                  });
    }
    const int before = stored;
    loop.run_until([&] { return stored > before; });
  }
}

LoadResult renew_leases(Store& store, BenchLoop& loop, const Load& load) {
  std::vector<double> latencies;
  latencies.reserve(static_cast<std::size_t>(load.writes));
  int refused = 0;
  int sent = 0;
  const auto start = Clock::now();
  const auto send = [&](Clock::time_point asked) {
    // Leases are written in an order that is unrelated to their keys.
    const auto lease = static_cast<int>(static_cast<std::int64_t>(sent) * 7'919 % load.leases);
    ++sent;
    store.write(Write{lease_key(lease), lease_value(load.value_bytes, sent), std::nullopt},
                [&latencies, &refused, asked](Result<WriteResult> result) {
                  if (!result) {
                    SPILLWAY_CHECK(result.error().code == ErrorCode::kTooManyRequests);
                    ++refused;
                    return;
                  }
                  SPILLWAY_CHECK(result->committed);
                  latencies.push_back(milliseconds_since(asked));
                });
  };
  const auto finished = [&] { return static_cast<int>(latencies.size()) + refused == load.writes; };
  loop.run_until([&] {
    if (load.offered_per_second > 0) {
      const double due = milliseconds_since(start) * load.offered_per_second / 1000;
      while (sent < load.writes && sent < static_cast<int>(due)) {
        send(start + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(sent / load.offered_per_second)));
      }
    } else {
      while (sent < load.writes && sent - static_cast<int>(latencies.size()) < load.writers) send(Clock::now());
    }
    return finished();
  });
  LoadResult result = summary(std::move(latencies), milliseconds_since(start));
  result.refused = refused;
  return result;
}

}  // namespace spillway::store
