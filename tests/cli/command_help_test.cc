// The command line's own texts: help, mistakes, completion. No word of the library that parses it appears in them.
#include "cli/flags/command_line.h"
#include "cli/flags/help_topics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iomanip>
#include <regex>
#include <sstream>

namespace spillway::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

EarlyExit answer(std::vector<const char*> words) {
  words.insert(words.begin(), "spillway");
  const auto result = parse_command_line(static_cast<int>(words.size()), words.data());
  const auto* early = std::get_if<EarlyExit>(&result);
  EXPECT_NE(early, nullptr) << words.back();
  return early != nullptr ? *early : EarlyExit{};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The offered words, without their descriptions.
std::vector<std::string> offers(std::vector<const char*> words) {
  words.insert(words.begin(), {"__complete", "--"});
  std::vector<std::string> found;
  for (const std::string& line : lines_of(answer(std::move(words)).text))
    found.push_back(line.substr(0, line.find('\t')));
  return found;
}

std::vector<std::string> commands() {
  std::vector<std::string> found = offers({""});
  for (const std::string& name : offers({"store", ""})) found.push_back("store " + name);
  for (const std::string& name : offers({"images", ""})) found.push_back("images " + name);
  return found;
}

std::string help_of(const std::string& command) {
  const std::size_t space = command.find(' ');
  const std::string first = command.substr(0, space);
  if (space == std::string::npos) return answer({first.c_str(), "--help"}).text;
  const std::string second = command.substr(space + 1);
  return answer({first.c_str(), second.c_str(), "--help"}).text;
}

/// The help with every flag.
std::string all_help_of(const std::string& command) {
  const std::size_t space = command.find(' ');
  const std::string first = command.substr(0, space);
  if (space == std::string::npos) return answer({first.c_str(), "--help-all"}).text;
  const std::string second = command.substr(space + 1);
  return answer({first.c_str(), second.c_str(), "--help-all"}).text;
}

TEST(Help, OfEveryCommandIsInOurWordsAndFitsTheScreen) {
  EXPECT_THAT(commands(),
              IsSupersetOf({"up", "agent", "controller", "explain", "simulate", "completion", "store copy"}));
  for (const std::string& command : commands()) {
    const std::string help = all_help_of(command);
    EXPECT_THAT(help, HasSubstr("\nUsage: spillway " + command + " ")) << command;
    EXPECT_THAT(help, AllOf(Not(HasSubstr("ENUM")), Not(HasSubstr("TEXT:")), Not(HasSubstr("INT in")),
                            Not(HasSubstr(" Needs:")), Not(HasSubstr("->"))))
        << command;
    for (const std::string& line : lines_of(help)) {
      const bool is_list_of_values = line.starts_with("  --") && line.contains('|');
      EXPECT_TRUE(line.size() <= 100 || is_list_of_values) << command << ": " << line;
    }
  }
}

TEST(Help, FlagsAreUnderHeadings) {
  const std::string help = all_help_of("up");
  std::size_t last = 0;
  for (const char* heading : {"Store:", "Serving:", "Audit log:", "Node:", "Eviction:", "Node lifecycle:", "Brakes:"}) {
    const std::size_t at = help.find(std::string("\n") + heading);
    ASSERT_NE(at, std::string::npos) << heading;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  EXPECT_GT(help.find("--eviction-hard"), help.find("\nEviction:"));
  EXPECT_LT(help.find("--eviction-hard"), help.find("\nReservations:"));
}

TEST(Help, SaysWhatAFlagTakes) {
  const std::string help = all_help_of("up");
  EXPECT_THAT(help, HasSubstr("--process-isolation namespaces|none"));
  EXPECT_THAT(help, HasSubstr("--nodes 0..64"));
  EXPECT_THAT(help, HasSubstr("--etcd-certfile FILE"));
  EXPECT_THAT(help, HasSubstr("PEM file: the key of --etcd-certfile (together with --etcd-certfile)"));
  EXPECT_THAT(help_of("zones"), HasSubstr("-o, --output text|wide|json|yaml"));
}

TEST(Help, BeginsWithExamplesThatTheProgramTakes) {
  for (const std::string& command : commands()) {
    const HelpTopic* const topic = find_help_topic(command);
    ASSERT_NE(topic, nullptr) << command;
    EXPECT_EQ(topic->examples.size(), 3U) << command;
    EXPECT_THAT(help_of(command), HasSubstr("\nExamples:\n  # ")) << command;
    for (const auto& [call, meaning] : topic->examples) {
      EXPECT_LE(meaning.size(), 70U) << meaning;
      std::istringstream in{std::string(call)};
      std::vector<std::string> words;
      for (std::string word; in >> std::quoted(word);) words.push_back(word);
      const auto program =
          std::ranges::find_if(words, [](const std::string& word) { return word.ends_with("spillway"); });
      ASSERT_NE(program, words.end()) << call;
      std::vector<const char*> given;
      for (auto word = program; word != words.end() && *word != ">"; ++word) given.push_back(word->c_str());
      if (command == "completion") continue;  // the shell redirects its output
      const auto result = parse_command_line(static_cast<int>(given.size()), given.data());
      const auto* early = std::get_if<EarlyExit>(&result);
      EXPECT_TRUE(early == nullptr || early->text.contains("which does not exist")) << call << ": " << early->text;
    }
  }
}

TEST(Help, ShowsTheMostUsedFlagsAndWhereTheOthersAre) {
  for (const HelpTopic& topic : help_topics()) {
    for (const std::string_view flag : topic.most_used) {
      EXPECT_THAT(help_of(std::string(topic.command)), HasSubstr("\n  " + std::string(flag))) << topic.command;
    }
  }
  const std::string help = help_of("up");
  EXPECT_LE(lines_of(help).size(), 64U) << "a newcomer reads it on one screen or two";
  EXPECT_THAT(help, Not(HasSubstr("--etcd-cafile")));
  EXPECT_THAT(help, HasSubstr("All flags, by topic (`spillway up --help-all`):"));
  EXPECT_THAT(all_help_of("up"), HasSubstr("--etcd-cafile FILE"));
}

TEST(Help, ListsEveryCommandUnderAHeading) {
  const std::string help = answer({"--help"}).text;
  EXPECT_EQ(help, answer({}).text);
  EXPECT_EQ(help, answer({"help"}).text);
  for (const std::string& command : offers({""})) EXPECT_THAT(help, HasSubstr("\n  " + command + " ")) << command;
  EXPECT_THAT(help, HasSubstr("\nCommands to begin with:\n  demo "));
}

TEST(Help, NamesTheSameThingTheSameEverywhere) {
  const std::pair<const char*, const char*> rows[] = {
      {"--kubeconfig", "FILE"}, {"--context", "NAME"},         {"--data-dir", "DIR"}, {"--state-dir", "DIR"},
      {"--config-dir", "DIR"},  {"--controller", "URL"},       {"--node", "NAME"},    {"--namespace", "NAME"},
      {"--journal", "FILE"},    {"--write-kubeconfig", "FILE"}};
  for (const std::string& command : commands()) {
    for (const std::string& line : lines_of(all_help_of(command))) {
      EXPECT_THAT(line, AllOf(Not(HasSubstr(" DIRECTORY")), Not(HasSubstr(" LIST")))) << command;
      for (const auto& [flag, placeholder] : rows) {
        const std::size_t at = line.find(std::string(flag) + " ");
        if (at == std::string::npos || at > 20 || !line.starts_with("  -")) continue;
        EXPECT_TRUE(line.substr(at).starts_with(std::string(flag) + " " + placeholder)) << command << ": " << line;
      }
    }
  }
}

TEST(ExitCodes, AreInOneTable) {
  const EarlyExit table = answer({"help", "exit-codes"});
  EXPECT_EQ(table.exit_code, kExitOk);
  for (const int code : {kExitOk, kExitFailure, kExitUsage, kExitNegative, kExitWarnings, kExitInvariant})
    EXPECT_THAT(table.text, HasSubstr("\n  " + std::to_string(code) + "  "));
}

TEST(Mistakes, SayWhatWasExpected) {
  const std::pair<std::vector<const char*>, const char*> rows[] = {
      {{"up", "--eviction-hard", "memory.available=100Mi"},
       "--eviction-hard: expected SIGNAL<VALUE, for example 'memory.available<100Mi', got \"memory.available=100Mi\"; "
       "see"},
      {{"up", "--log-level", "x"}, "--log-level: expected info, debug, warning or error, got \"x\"; see"},
      {{"up", "--nodes", "70"}, "--nodes: expected 0 to 64, got \"70\"; see"},
      {{"up", "--nodes", "x"}, "--nodes: expected 0 to 64, got \"x\"; see"},
      {{"up", "--port", "1", "--port", "2"}, "--port: given 2 times, expected once; see"},
      {{"up", "--etcd-cafile", "/nope"}, "--etcd-cafile: expected a file, got \"/nope\", which does not exist; see"},
      {{"agent", "--config-dir", "/nope"}, "--config-dir: expected a directory, got \"/nope\", which does not exist"},
      {{"agent", "--process-isolation", "x"}, "--process-isolation: expected namespaces or none, got \"x\"; see"},
      {{"apiserver", "--goaway-chance", "5"}, "--goaway-chance: expected 0 to 0.02, got \"5\"; see"},
      {{"zones", "-o", "xml"}, "--output: expected text, wide, json or yaml, got \"xml\"; see"},
      {{"explain", "pod/p", "-o", "wide"}, "--output: expected text, json or yaml, got \"wide\"; see"},
      {{"up", "--node-memory"}, "--node-memory: expected a value after it; see"},
      {{"scheduler", "--write-config-to", ""}, "--write-config-to: expected a file, got \"\"; see"},
      {{"scheduler", "--write-config-to="}, "--write-config-to: expected a"},
      {{"record", "--dir", "/x", "--context", "c", "-o", "x"}, "excludes"},
      {{"record", "--dir", "/x", "--cluster", "c", "-o", "x"}, "excludes"},
      {{"record", "--dir", "/x", "--user", "u", "-o", "x"}, "excludes"},
      {{"record", "n1", "-o", "json"}, "--output-file: expected a file: a recording has no formats; write ./json"},
      {{"agent", "stray"}, "unexpected argument \"stray\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.36..1.32"},
       "--version: expected the older version first, then a newer one, got \"1.36..1.32\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.34..1.34"},
       "--version: expected the older version first, then a newer one, got \"1.34..1.34\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.20..1.40"},
       "--version: expected versions from 1.32 to 1.36, got \"1.20..1.40\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.32..1.37"},
       "--version: expected versions from 1.32 to 1.36, got \"1.32..1.37\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "abc"},
       "--version: expected OLD..NEW, for example 1.32..1.36, got \"abc\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.36"},
       "--version: expected OLD..NEW, for example 1.32..1.36, got \"1.36\"; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--version", "1.32..1.-1"},
       "--version: expected OLD..NEW, for example 1.32..1.36, got \"1.32..1.-1\"; see"},
      {{"lint", "k.yaml", "--version", "1.32..1.36"}, "--version: expected only together with --for kubelet; see"},
      {{"lint", "k.yaml", "--for", "agent", "--version", "1.32..1.36"},
       "--version: expected only together with --for kubelet; see"},
      {{"lint", "k.yaml", "--for", "kubelet", "--flags", "f.env"}, "--flags requires --version"},
      {{"completion", "ksh"}, "SHELL: expected bash, zsh or fish, got \"ksh\"; see"},
  };
  for (const auto& [words, said] : rows) {
    const EarlyExit exit = answer(words);
    EXPECT_EQ(exit.exit_code, kExitUsage) << said;
    EXPECT_THAT(exit.text, HasSubstr(said));
    EXPECT_EQ(lines_of(exit.text).size(), 1U) << exit.text;
  }
}

TEST(Logs, WhetherOneAskedForThemIsKnown) {
  const auto given = [](std::vector<const char*> words) {
    words.insert(words.begin(), "spillway");
    const auto result = parse_command_line(static_cast<int>(words.size()), words.data());
    const auto* line = std::get_if<CommandLine>(&result);
    return line != nullptr && line->log.given;
  };
  EXPECT_FALSE(given({"up"}));
  EXPECT_TRUE(given({"up", "--log-level", "info"})) << "the default, asked for";
  EXPECT_TRUE(given({"--log-format=json", "up"}));
}

TEST(Mistakes, ValuesThatAreTakenAreTaken) {
  const auto level = [](const char* word) {
    const char* const words[] = {"spillway", "zones", "--log-level", word, "-o", "json"};
    const auto result = parse_command_line(6, words);
    const auto* line = std::get_if<CommandLine>(&result);
    EXPECT_NE(line, nullptr) << word;
    return line != nullptr ? std::optional(line->log.level) : std::nullopt;
  };
  EXPECT_EQ(level("debug"), telemetry::Level::kDebug);
  EXPECT_EQ(level("info"), telemetry::Level::kInfo);
  EXPECT_EQ(level("warning"), telemetry::Level::kWarning);
  EXPECT_EQ(level("error"), telemetry::Level::kError);
}

TEST(Lint, TakesTwoVersions) {
  const char* const words[] = {"spillway", "lint", "--for", "kubelet", "--version", "1.33..1.36", "k.yaml"};
  const auto result = parse_command_line(7, words);
  const auto* line = std::get_if<CommandLine>(&result);
  ASSERT_NE(line, nullptr);
  const auto* lint = std::get_if<LintCommand>(&line->command);
  ASSERT_NE(lint, nullptr);
  ASSERT_TRUE(lint->versions.has_value());
  EXPECT_EQ(lint->versions->older, 33);
  EXPECT_EQ(lint->versions->newer, 36);
}

TEST(Completion, OffersCommandsFlagsAndValues) {
  EXPECT_THAT(offers({"ex"}), ElementsAre("explain"));
  EXPECT_THAT(offers({"store", "de"}), ElementsAre("defrag"));
  EXPECT_THAT(offers({"up", "--eviction-m"}),
              ElementsAre("--eviction-minimum-reclaim", "--eviction-max-pod-grace-period", "--eviction-mode"));
  EXPECT_THAT(offers({"zones", "--log-"}), ElementsAre("--log-level", "--log-format"));
  EXPECT_THAT(offers({"up", "--process-isolation", ""}), ElementsAre("namespaces", "none"));
  EXPECT_THAT(offers({"zones", "-o", "j"}), ElementsAre("json"));
  EXPECT_THAT(offers({"completion", "f"}), ElementsAre("fish"));
}

TEST(Completion, KnowsWhatIsAValueOfAFlag) {
  EXPECT_THAT(offers({"up", "--node-name", "store", "--tls-s"}), ElementsAre("--tls-san"));
  EXPECT_THAT(offers({"up", "--node-name=store", "--tls-s"}), ElementsAre("--tls-san"));
  EXPECT_THAT(offers({"up", "--kubelet-insecure-tls", "--tls-s"}), ElementsAre("--tls-san"));
}

TEST(Completion, AsksTheShellForFiles) {
  EXPECT_THAT(offers({"up", "--etcd-cafile", ""}), ElementsAre(":file"));
  EXPECT_THAT(offers({"agent", "--config-dir", ""}), ElementsAre(":directory"));
  EXPECT_THAT(offers({"simulate", "zo"}), ElementsAre(":file"));
  EXPECT_THAT(offers({"up", "--node-name", ""}), ElementsAre());
  EXPECT_THAT(offers({"explain", "po"}), ElementsAre());
}

TEST(Completion, WhateverIsAskedIsAnswered) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {}, {"nothing", "here", ""}, {"up", "--", ""}, {"--log-level"}, {"-", "-"}, {"store", "store", "store", ""}})
    EXPECT_LT(offers(words).size(), 200U);
}

}  // namespace
}  // namespace spillway::cli
