// Quantities as the reference costs measure them: 1,000 strings of ten kinds, taken in turn.
#include "api/text/quantity.h"
#include "base/rng.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::api {
namespace {

constexpr int kCount = 1000;

std::string text_of(int n) {
  switch (n % 10) {
    case 0:
      return fmt::format("{}m", n + 1);
    case 1:
      return fmt::format("{}Mi", n + 1);
    case 2:
      return fmt::format("{}Ki", n + 1);
    case 3:
      return fmt::format("{}Gi", n % 64 + 1);
    case 4:
      return fmt::format("{}", n + 1);
    case 5:
      return fmt::format("0.{}", n % 9 + 1);
    case 6:
      return fmt::format("{}.5Gi", n % 16 + 1);
    case 7:
      return fmt::format("{}M", n + 1);
    case 8:
      return fmt::format("{}", 1024 * n + n % 7);
    default:
      return fmt::format("{}e6", n % 90 + 10);
  }
}

std::vector<std::string> texts() {
  std::vector<std::string> result;
  for (int n = 0; n < kCount; ++n) result.push_back(text_of(n));
  return result;
}

std::vector<Quantity> quantities() {
  std::vector<Quantity> result;
  for (const std::string& text : texts()) result.push_back(parse_quantity(text).value_or(Quantity()));
  return result;
}

/// 64-bit FNV-1a over 4,096 bytes: what other numbers of the same run are compared with.
void calibration(benchmark::State& state) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i % 256);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(fnv1a64(bytes));
  }
}

void parse_one(benchmark::State& state) {
  const std::vector<std::string> input = texts();
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse_quantity(input[i]));
    i = (i + 1) % input.size();
  }
}

void parse_and_print_one(benchmark::State& state) {
  const std::vector<std::string> input = texts();
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse_quantity(input[i])->canonical());
    i = (i + 1) % input.size();
  }
}

void sum_of_1000(benchmark::State& state) {
  const std::vector<Quantity> input = quantities();
  for (auto _ : state) {
    Quantity sum;
    for (const Quantity& quantity : input) sum += quantity;
    benchmark::DoNotOptimize(sum);
  }
}

/// As a ranking does: orders the indices of 1,000 amounts, largest first.
void rank_1000(benchmark::State& state) {
  const std::vector<Quantity> input = quantities();
  std::vector<std::uint32_t> order(input.size());
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&input](std::uint32_t a, std::uint32_t b) {
      const auto amounts = input[b] <=> input[a];
      return amounts != 0 ? amounts < 0 : a < b;
    });
    benchmark::DoNotOptimize(order.data());
  }
}

BENCHMARK(calibration);
BENCHMARK(parse_one);
BENCHMARK(parse_and_print_one);
BENCHMARK(sum_of_1000);
BENCHMARK(rank_1000);

}  // namespace
}  // namespace spillway::api
