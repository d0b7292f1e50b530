// Goal: objects as the API server shows them become one sentence and its evidence; every code is said somewhere.
#include "cli/text/outlook_text.h"

#include "api/codec/codec.h"
#include "api/object/endpoints.h"
#include "api/object/horizontal_autoscaler.h"
#include "api/object/job.h"
#include "api/object/service.h"
#include "api/object/storage.h"
#include "api/object/workload.h"
#include "api/text/time_text.h"
#include "base/rng.h"
#include "cli/text/overview_text.h"
#include "policy/decision_json.h"
#include "policy/outlook/autoscaler_outlook.h"
#include "policy/outlook/claim_outlook.h"
#include "policy/outlook/cron_outlook.h"
#include "policy/outlook/job_outlook.h"
#include "policy/outlook/overview.h"
#include "policy/outlook/pod_outlook.h"
#include "policy/outlook/service_outlook.h"
#include "policy/outlook/workload_outlook.h"
#include "support/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <expected>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::cli {
namespace {

using api::Json;
using outlook::Outlook;
using policy::Fact;

template <typename T>
std::optional<std::vector<std::shared_ptr<const T>>> objects_at(const Json& row, std::string_view member) {
  const Json* list = row.find(member);
  if (list == nullptr) return std::nullopt;
  std::vector<std::shared_ptr<const T>> out;
  for (const Json& each : *list->if_array()) out.push_back(std::make_shared<const T>(api::decode<T>(each).value()));
  return out;
}

Outlook job_outlook(const Json& row, WallTime now) {
  const auto job = api::decode<api::Job>(*row.find("object")).value();
  outlook::JobScene scene{job, objects_at<api::Pod>(row, "pods"), {}};
  if (const Json* refused = row.find("refused")) {
    scene.refused = {std::string(refused->string_at({"message"})), api::parse_time(refused->string_at({"at"})).value()};
  }
  return outlook::explain_job(scene, now);
}

Outlook cron_outlook(const Json& row, WallTime now) {
  const auto cron = api::decode<api::CronJob>(*row.find("object")).value();
  return outlook::explain_cron_job({cron, objects_at<api::Job>(row, "jobs")}, now);
}

Outlook service_outlook(const Json& row, WallTime now) {
  const auto service = api::decode<api::Service>(*row.find("object")).value();
  const std::string external(row.find("object")->string_at({"spec", "externalName"}));
  return outlook::explain_service({service,
                                   external,
                                   objects_at<api::Pod>(row, "pods"),
                                   objects_at<api::EndpointSlice>(row, "slices"),
                                   {},
                                   std::string(row.string_at({"notCarried"}))},
                                  now);
}

Outlook autoscaler_outlook(const Json& row, WallTime now) {
  const auto autoscaler = api::decode<api::HorizontalPodAutoscaler>(*row.find("object")).value();
  outlook::AutoscalerScene scene{autoscaler, {}, objects_at<api::Pod>(row, "pods"), {"shop/web"}, {}};
  const auto answered = [](const Json& document) -> Result<Json> {
    if (const auto error = document.string_at({"error"}); !error.empty()) {
      return make_error(ErrorCode::kNotFound, "{}", error);
    }
    return document;
  };
  if (const Json* scale = row.find("scale")) {
    const Result<Json> document = answered(*scale);
    scene.scale = document ? Result<autoscaling::Scale>(autoscaling::read_scale(*document)) : document.error();
  }
  if (const Json* answers = row.find("answers")) {
    scene.answers.emplace();
    const auto targets = autoscaling::metric_targets(autoscaler);
    for (std::size_t i = 0; i < std::min(targets.size(), answers->if_array()->size()); ++i) {
      scene.answers->push_back({targets[i], answered(answers->if_array()->at(i))});
    }
  }
  if (const Json* others = row.find("others")) scene.selecting.emplace_back(*others->if_string());
  return outlook::explain_autoscaler(scene, {Instant(hours(10000)), now});
}

Outlook claim_outlook(const Json& row, WallTime now) {
  const auto claim = api::decode<api::PersistentVolumeClaim>(*row.find("object")).value();
  outlook::ClaimScene scene{
      claim, objects_at<api::StorageClass>(row, "classes"), objects_at<api::Pod>(row, "pods"), {}};
  if (const auto warning = row.string_at({"warning"}); !warning.empty()) scene.last_message = std::string(warning);
  return outlook::explain_claim(scene, now);
}

template <typename Workload>
Outlook workload_outlook(const Json& row, WallTime now, std::int64_t wanted, outlook::PodOrder order) {
  const auto workload = api::decode<Workload>(*row.find("object")).value();
  outlook::WorkloadScene scene{
      .kind = Workload::kKind,
      .metadata = workload.metadata,
      .wanted = wanted,
      .order = order,
      .pods = objects_at<api::Pod>(row, "pods"),
      .claims = objects_at<api::PersistentVolumeClaim>(row, "claims").value_or(std::vector<outlook::ClaimPtr>()),
      .classes = objects_at<api::StorageClass>(row, "classes"),
      .refused = {}};
  if (const Json* refused = row.find("refused")) {
    scene.refused = {std::string(refused->string_at({"message"})), api::parse_time(refused->string_at({"at"})).value()};
  }
  return outlook::explain_workload(scene, now);
}

outlook::Overview overview_in(const Json& row) {
  const auto all = []<typename T>(const Json& from, std::string_view member,
                                  std::vector<std::shared_ptr<const T>>& to) {
    if (auto found = objects_at<T>(from, member)) to = *std::move(found);
  };
  outlook::OverviewScene scene;
  all(row, "nodes", scene.nodes);
  all(row, "pods", scene.pods);
  all(row, "claims", scene.claims);
  scene.classes = objects_at<api::StorageClass>(row, "classes");
  all(row, "services", scene.services);
  all(row, "refusals", scene.refusals);
  const auto makers = [&]<typename T>(std::string_view member, std::vector<std::shared_ptr<const T>> found) {
    all(row, member, found);
    for (const auto& each : found) scene.makers.push_back(outlook::maker_of(*each));
  };
  makers("replicasets", std::vector<std::shared_ptr<const api::ReplicaSet>>());
  makers("statefulsets", std::vector<std::shared_ptr<const api::StatefulSet>>());
  makers("daemonsets", std::vector<std::shared_ptr<const api::DaemonSet>>());
  makers("jobs", std::vector<std::shared_ptr<const api::Job>>());
  scene.hold = row.string_at({"hold"});
  if (const Json* standings = row.find("standings")) {
    for (const auto& [node, decision] : *standings->if_object()) {
      scene.standings.emplace(node, policy::decision_from_json(decision).value());
    }
  }
  return outlook::overview_of(scene, api::parse_time(row.string_at({"now"})).value());
}

Outlook outlook_of(const Json& row) {
  const WallTime now = api::parse_time(row.string_at({"now"})).value();
  const std::string_view kind = row.string_at({"object", "kind"});
  if (kind == "Job") return job_outlook(row, now);
  if (kind == "CronJob") return cron_outlook(row, now);
  if (kind == "PersistentVolumeClaim") return claim_outlook(row, now);
  const Json* spec = row.find("object")->find("spec");
  const Json* replicas = spec == nullptr ? nullptr : spec->find("replicas");
  const std::int64_t wanted = replicas == nullptr ? 0 : replicas->if_int64().value_or(0);
  if (kind == "ReplicaSet") return workload_outlook<api::ReplicaSet>(row, now, wanted, outlook::PodOrder::kAny);
  if (kind == "StatefulSet") return workload_outlook<api::StatefulSet>(row, now, wanted, outlook::PodOrder::kOneByOne);
  if (kind == "DaemonSet") return workload_outlook<api::DaemonSet>(row, now, 0, outlook::PodOrder::kAny);
  if (kind == "Pod") {
    std::vector<api::Pod> neighbours;
    if (const auto pods = objects_at<api::Pod>(row, "pods")) {
      for (const auto& pod : *pods) neighbours.push_back(*pod);
    }
    return outlook::explain_containers(api::decode<api::Pod>(*row.find("object")).value(), now, neighbours).value();
  }
  return kind == "Service" ? service_outlook(row, now) : autoscaler_outlook(row, now);
}

/// With SPILLWAY_TEXTS=FILE the texts are appended to that file, a JSON line each, to renew the rows.
void write_outlook_text(const std::string& name, const std::string& text) {
  const char* const file = std::getenv("SPILLWAY_TEXTS");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app) << api::to_text(Json::object({{"name", name}, {"text", text}})) << "\n";
}

TEST(OutlookText, SaysOfObjectsWhatTheRowsSay) {
  const auto rows = support::load_rows(SPILLWAY_OUTLOOKS);
  ASSERT_TRUE(rows);
  std::set<outlook::Code> said;
  for (const support::VectorRow& row : *rows) {
    if (row.document.find("object") == nullptr) {
      const outlook::Overview overview = overview_in(row.document);
      const std::string text = overview_text(overview, "default", Paint::kNone, 80);
      write_outlook_text(row.name(), text);
      EXPECT_EQ(text, row.document.string_at({"text"})) << row.name();
      for (const outlook::Concern& concern : overview.concerns) said.insert(concern.remark.code);
      continue;
    }
    const Outlook outlook = outlook_of(row.document);
    const std::string text = explain(outlook, Paint::kNone);
    write_outlook_text(row.name(), text);
    EXPECT_EQ(text, row.document.string_at({"text"})) << row.name();
    for (const outlook::Remark& remark : outlook.remarks) {
      said.insert(remark.code);
      std::string words(to_string(remark.code));
      std::ranges::replace(words, '-', ' ');
      EXPECT_FALSE(sentence_of(remark).starts_with(words + ":")) << row.name() << " has not the facts for " << words;
    }
  }
  for (int code = 0; code <= static_cast<int>(outlook::kLastCode); ++code) {
    EXPECT_TRUE(said.contains(static_cast<outlook::Code>(code))) << to_string(static_cast<outlook::Code>(code));
  }
}

/// The document with some members and elements removed, and some elements twice.
Json worn(const Json& document, Rng& rng) {
  constexpr std::uint32_t kGonePpm = 60'000;
  if (const Json::Object* members = document.if_object()) {
    Json out = Json::object();
    for (const auto& member : *members) {
      const bool needed = member.key == "kind" || member.key == "now";
      if (needed || !rng.chance_ppm(kGonePpm)) out[member.key] = worn(member.value, rng);
    }
    return out;
  }
  const Json::Array* elements = document.if_array();
  if (elements == nullptr) return document;
  Json out = Json::array();
  for (const Json& element : *elements) {
    for (auto times = rng.chance_ppm(2 * kGonePpm) ? 2 * rng.below(2) : 1; times > 0; --times) {
      out.if_array()->push_back(worn(element, rng));
    }
  }
  return out;
}

bool has_whole_sentences(const Outlook& outlook) {
  return std::ranges::all_of(outlook.remarks, [](const outlook::Remark& remark) {
    std::string words(to_string(remark.code));
    std::ranges::replace(words, '-', ' ');
    const std::string sentence = sentence_of(remark);
    return !sentence.empty() && sentence != words && !sentence.starts_with(words + ":");
  });
}

/// nullopt: no object of that kind is like that.
std::optional<Outlook> outlook_if_any(const Json& row) {
  try {
    return outlook_of(row);
  } catch (const std::bad_expected_access<void>&) {
    return std::nullopt;
  } catch (const std::bad_optional_access&) {
    return std::nullopt;
  }
}

TEST(OutlookText, ObjectsThatLackThisAndThatAreExplainedAllTheSame) {
  const auto rows = support::load_rows(SPILLWAY_OUTLOOKS);
  ASSERT_TRUE(rows);
  std::size_t explained = 0;
  Rng rng(20'261'126);
  for (const support::VectorRow& row : *rows) {
    for (int round = 0; round < 40; ++round) {
      const Json document = worn(row.document, rng);
      const std::optional<Outlook> outlook = document.find("object") ? outlook_if_any(document) : std::nullopt;
      if (!outlook) continue;
      ++explained;
      ASSERT_FALSE(outlook->remarks.empty()) << row.name() << " in round " << round;
      EXPECT_TRUE(has_whole_sentences(*outlook)) << explain(*outlook, Paint::kNone);
      EXPECT_EQ(explain(*outlook, Paint::kNone).find_first_of("{}|"), std::string::npos);
      for (const outlook::Part& part : outlook->parts) {
        EXPECT_LE(part.rows.size(), outlook::kRowsMax) << part.name;
        EXPECT_GE(part.total, static_cast<std::int64_t>(part.rows.size())) << part.name;
      }
    }
  }
  EXPECT_GT(explained, 1000U);
}

TEST(OutlookText, FillsInWhatIsThere) {
  const std::vector<Fact> facts{
      {"pods", std::int64_t{1}}, {"failed", std::int64_t{3}}, {"wait_seconds", std::int64_t{300}}};
  EXPECT_EQ(fill_in("{pods:pod runs|pods run}", facts), "1 pod runs");
  EXPECT_EQ(fill_in("{failed:pod fails|pods fail}[ of {most}][, for {wait_seconds}]", facts), "3 pods fail, for 5m");
  EXPECT_EQ(fill_in("{most} of them", facts), "");
  EXPECT_EQ(fill_in("plain", facts), "plain");
}

Outlook of_job(std::vector<outlook::Remark> remarks) {
  Outlook outlook;
  outlook.subject = {"Job", "shop", "import", "u"};
  outlook.remarks = std::move(remarks);
  return outlook;
}

TEST(OutlookText, LeadsWithTheAnswerAndSaysHowManyMoreThereAre) {
  Outlook outlook = of_job({{outlook::Code::kJobRuns, {{"running", std::int64_t{40}}}}});
  outlook.parts = {{"pods", {{"import-1", "running", {{"node", std::string("n1")}}}}, 40}};
  EXPECT_EQ(explain(outlook, Paint::kNone),
            "job shop/import: 40 pods run\n\n  Pods\n    POD        STATE     NODE\n    import-1   running   n1\n"
            "    and 39 more\n");
  EXPECT_NE(explain(outlook, Paint::kTerminal).find("\x1b[1mjob shop/import"), std::string::npos);
}

TEST(OutlookText, WhatAnObjectSaysMovesNoTerminal) {
  const std::string evil = "\x1b[2J\r\n\x07\xff";
  Outlook outlook = of_job({{outlook::Code::kJobPodsRefused, {{"message", evil}, {"last_at", evil}}},
                            {outlook::Code::kJobRuns, {{"nothing", evil}}}});
  outlook.subject.name += evil;
  outlook.parts = {{"pods", {{"a" + evil, "running", {{"node", evil}}}}, 1}};
  const std::string text = explain(outlook, Paint::kNone);
  EXPECT_EQ(text.find_first_of("\x1b\x07\r\xff"), std::string::npos) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 8) << text;  // no line of its own for that row
}

TEST(OutlookText, JsonHasTheSentenceAndTheFacts) {
  Outlook outlook = of_job({{outlook::Code::kJobRuns, {{"running", std::int64_t{2}}}}});
  outlook.parts = {{"pods", {{"import-1", "running", {{"node", std::string("n1")}}}}, 2}};
  const Json document = explanation_json(outlook);
  EXPECT_EQ(document.string_at({"kind"}), "Explanation");
  EXPECT_EQ(document.string_at({"headline"}), "job shop/import: 2 pods run");
  EXPECT_EQ(document.string_at({"outlook", "verdict"}), "rests");
  const Json& remark = document.at({"outlook", "remarks"})->if_array()->at(0);
  EXPECT_EQ(remark.string_at({"code"}), "job-runs");
  EXPECT_EQ(api::to_text(*remark.find("facts")), R"([{"name":"running","value":2}])");
  const Json& part = document.at({"outlook", "parts"})->if_array()->at(0);
  EXPECT_EQ(part.find("total")->if_int64(), 2);
  EXPECT_EQ(part.find("rows")->if_array()->at(0).string_at({"name"}), "import-1");
}

}  // namespace
}  // namespace spillway::cli
