// Goal: a decoded record equals the encoded one, and a hostile record gives one error.
#include "agent/recording/record.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::agent {
namespace {

api::MemoryStats some_memory(Rng& rng) {
  api::MemoryStats memory;
  memory.time = WallTime(microseconds(static_cast<std::int64_t>(rng.below(1ULL << 50U))));
  if (rng.below(2) == 0) memory.available_bytes = rng.next();
  if (rng.below(2) == 0) memory.working_set_bytes = rng.below(1'000'000);
  if (rng.below(2) == 0) memory.swap_left_bytes = -static_cast<std::int64_t>(rng.below(1000));
  return memory;
}

InputReceived some_observation(std::uint64_t seed) {
  Rng rng(seed);
  api::Summary summary;
  summary.node.node_name = "n" + std::to_string(seed);
  summary.node.memory = some_memory(rng);
  summary.node.fs = api::FsStats{.time = {}, .available_bytes = rng.next(), .capacity_bytes = {}};
  for (std::uint64_t pods = rng.below(5); pods > 0; --pods) {
    api::PodStats& pod = summary.pods.emplace_back();
    pod.uid = "uid-" + std::to_string(pods);
    pod.process_count = rng.below(100);
    pod.containers.emplace_back().memory = some_memory(rng);
    pod.volumes.emplace_back().fs.used_bytes = rng.next();
  }
  return {.at = {Instant(hours(1)), WallTime(microseconds(1'700'000'000'123'456))},
          .nested = rng.below(2) == 0,
          .input = Observed{.id = rng.next(),
                            .summary = std::move(summary),
                            .depth = rng.below(2) == 0 ? ObserveDepth::kWhole : ObserveDepth::kNodeMemory,
                            .layout = {}}};
}

api::Pod some_pod() {
  api::Pod pod;
  pod.metadata.ns = "shop";
  pod.metadata.name = "cart";
  pod.metadata.uid = "u1";
  pod.metadata.labels["team"] = "secret-label";
  pod.metadata.annotations["note"] = "secret-note";
  pod.metadata.annotations[std::string(api::kConfigSourceAnnotation)] = "file";
  pod.spec.priority = 7;
  pod.spec.overhead["memory"] = api::parse_quantity("1Mi").value();
  api::Container& container = pod.spec.containers.emplace_back();
  container.name = "c";
  container.args = {"--password=secret-arg"};
  container.env.emplace_back().value = "secret-env";
  container.resources.requests["memory"] = api::parse_quantity("1024Mi").value();
  container.resources.limits["ephemeral-storage"] = api::parse_quantity("0.5").value();
  api::Volume& volume = pod.spec.volumes.emplace_back();
  volume.name = "scratch";
  volume.source = "emptyDir";
  volume.empty_dir = api::EmptyDirVolume{.medium = {}, .size_limit = api::parse_quantity("512").value()};
  return pod;
}

TEST(Records, ObservationsAreReadAsTheyWereWritten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const InputReceived made = some_observation(seed);
    const auto read = decode_record(encode_record(made));
    ASSERT_TRUE(read) << seed;
    const auto& received = std::get<InputReceived>(*read);
    const auto& before = std::get<Observed>(made.input);
    const auto& after = std::get<Observed>(received.input);
    EXPECT_EQ(*after.summary, *before.summary) << seed;
    EXPECT_EQ(after.id, before.id) << seed;
    EXPECT_EQ(after.depth, before.depth) << seed;
    EXPECT_EQ(received.nested, made.nested) << seed;
    EXPECT_EQ(received.at.mono, made.at.mono) << seed;
    EXPECT_EQ(received.at.wall, made.at.wall) << seed;
    EXPECT_EQ(encode_input(&before, made.nested, made.at), encode_record(made)) << "without a copy: the same bytes";
  }
}

TEST(Records, AnObservationThatFailedKeepsItsError) {
  const Observed failed{.id = 3, .summary = make_error(ErrorCode::kTimeout, "too slow")};
  const auto read = decode_record(encode_input(&failed, false, {}));
  ASSERT_TRUE(read);
  const auto& seen = std::get<Observed>(std::get<InputReceived>(*read).input);
  ASSERT_FALSE(seen.summary);
  EXPECT_EQ(seen.summary.error().text(), "too slow");
  EXPECT_EQ(seen.summary.error().code, ErrorCode::kTimeout);
}

TEST(Records, OfAPodOnlyWhatItsEvictionDependsOnIsKept) {
  const api::Pod pod = some_pod();
  const std::string bytes = encode_record(PodsSeen{.uids = {"u1"}, .changed = {stripped(pod)}});
  EXPECT_FALSE(bytes.contains("secret")) << bytes;
  const auto read = decode_record(bytes);
  ASSERT_TRUE(read);
  const api::Pod& kept = std::get<PodsSeen>(*read).changed.at(0);
  EXPECT_EQ(kept, stripped(pod));
  EXPECT_TRUE(api::is_static(kept));
  EXPECT_EQ(kept.spec.priority, 7);
  const api::Quantity& request = kept.spec.containers.at(0).resources.requests.at("memory");
  EXPECT_EQ(request.to_string(), pod.spec.containers.at(0).resources.requests.at("memory").to_string());
  EXPECT_EQ(request.format(), api::Quantity::Format::kBinarySI);
}

TEST(Records, AQuantityKeepsTheFormatItsSpellingDoesNotShow) {
  api::Pod pod;
  pod.metadata.uid = "u1";
  pod.spec.overhead["memory"] = api::Quantity::of_bytes(Bytes{500});
  const auto read = decode_record(encode_record(PodsSeen{.uids = {}, .changed = {pod}}));
  ASSERT_TRUE(read);
  const api::Quantity& kept = std::get<PodsSeen>(*read).changed.at(0).spec.overhead.at("memory");
  EXPECT_EQ(kept.format(), api::Quantity::Format::kBinarySI);
  EXPECT_EQ((kept + api::Quantity::of_bytes(Bytes{524})).to_string(), "1Ki");
}

TEST(Records, ACutOneIsRefused) {
  const std::string whole = encode_record(some_observation(3));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(decode_record(whole.substr(0, size)));
  EXPECT_FALSE(decode_record(whole + '\0')) << "nothing may follow";
}

/// Bytes of a stranger: an error or a value, and never more elements than bytes.
TEST(Records, AHostileOneIsReadOrRefused) {
  Rng rng(11);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = encode_record(some_observation(3));
    for (int changes = 0; changes < 3; ++changes) text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    const auto read = decode_record(text);
    if (!read) ++refused;
    const auto* received = read ? std::get_if<InputReceived>(&*read) : nullptr;
    const auto* seen = received != nullptr ? std::get_if<Observed>(&received->input) : nullptr;
    if (seen != nullptr && seen->summary) EXPECT_LE(seen->summary->pods.size(), text.size());
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace spillway::agent
