// The meaning of the controllers' flags together.
#include "cli/config/manager_config.h"
#include "cli/flags/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

ControllerArgs parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), {"spillway", "controller", "--print-config"});
  auto line = parse_command_line(static_cast<int>(flags.size()), flags.data());
  EXPECT_TRUE(std::holds_alternative<CommandLine>(line)) << std::get<EarlyExit>(line).text;
  return std::get<ControllerCommand>(std::get<CommandLine>(line).command).controller;
}

TEST(ControllerFlags, CompatBringsTheDefaultsOfItsLine) {
  EXPECT_EQ(eviction_mode_of(parse({})), "taint");
  EXPECT_EQ(grace_period_of(parse({})), seconds(50));
  EXPECT_EQ(eviction_mode_of(parse({"--compat", "v1.7"})), "timeout");
  EXPECT_EQ(grace_period_of(parse({"--compat", "v1.7"})), seconds(40));
  EXPECT_EQ(eviction_mode_of(parse({"--compat", "v1.29"})), "taint");
  EXPECT_EQ(grace_period_of(parse({"--compat", "v1.29"})), seconds(40));
  EXPECT_EQ(grace_period_of(parse({"--compat", "v1.34"})), seconds(50));
}

TEST(ControllerFlags, WhatIsSaidWinsOverCompat) {
  EXPECT_EQ(grace_period_of(parse({"--node-monitor-grace-period", "44s", "--compat", "v1.7"})), seconds(44));
  EXPECT_EQ(eviction_mode_of(parse({"--compat", "v1.7", "--eviction-mode", "taint"})), "taint");
  EXPECT_EQ(eviction_mode_of(parse({"--compat", "v1.7", "--feature-gates", "TaintBasedEvictions=true"})), "taint");
}

TEST(ControllerFlags, WithoutTheTaintManagerNoTaintEvicts) {
  EXPECT_TRUE(parse({"--eviction-mode", "timeout"}).taint_manager);
  EXPECT_TRUE(parse({"--compat", "v1.7", "--enable-taint-manager=true"}).taint_manager);
  EXPECT_EQ(eviction_mode_of(parse({"--compat", "v1.7", "--enable-taint-manager=true"})), "timeout");
  const ControllerArgs off = parse({"--enable-taint-manager=false"});
  EXPECT_FALSE(off.taint_manager);
  EXPECT_EQ(eviction_mode_of(off), "timeout");
}

TEST(ControllerFlags, ATimeoutWithoutEffectIsNamed) {
  EXPECT_THAT(flags_without_effect(parse({"--pod-eviction-timeout", "3m"})),
              ElementsAre(Field(&FlagWithoutEffect::flag, "--pod-eviction-timeout")));
  EXPECT_THAT(flags_without_effect(parse({"--pod-eviction-timeout", "3m", "--compat", "v1.7"})), IsEmpty());
  EXPECT_THAT(flags_without_effect(parse({})), IsEmpty());
}

TEST(ControllerFlags, ThePrintedConfigurationSaysWhatHolds) {
  ControllerCommand command;
  command.controller = parse({"--compat", "v1.7"});
  const std::string text = api::to_text(manager_configuration(command));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("nodeMonitorGracePeriod":"40s")"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("evictionMode":"timeout")"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("enableTaintManager":true)"));
}

}  // namespace
}  // namespace spillway::cli
