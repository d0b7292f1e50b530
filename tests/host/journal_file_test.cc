#include "host/files/journal_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace spillway::host {

namespace {

class JournalFileTest : public ::testing::Test {
 protected:
  JournalFileTest() { folder_ = mkdtemp(pattern_); }

  ~JournalFileTest() override {
    for (const char* name : {"/j", "/j.1"}) std::remove((folder_ + name).c_str());
    std::remove(folder_.c_str());
  }

  agent::JournalEntry entry(const std::string& node) const {
    agent::JournalEntry made;
    made.decision.by = node;
    made.decision.at = WallTime(seconds(1'767'225'600));
    return made;
  }

  char pattern_[32] = "/tmp/spillway-journal-XXXXXX";
  std::string folder_;
};

TEST_F(JournalFileTest, WhatWasAppendedIsReadAfterARestart) {
  {
    auto journal = JournalFile::open(folder_ + "/j", {});
    ASSERT_TRUE(journal) << journal.error().text();
    (*journal)->append(entry("a"));
    (*journal)->append(entry("b"));
  }
  auto journal = JournalFile::open(folder_ + "/j", {});
  ASSERT_TRUE(journal);
  const auto entries = (*journal)->read();
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].decision.by, "a");
  EXPECT_EQ((*entries)[1].decision.by, "b");
}

TEST_F(JournalFileTest, ALineThatWasCutOffIsSkipped) {
  auto journal = JournalFile::open(folder_ + "/j", {});
  ASSERT_TRUE(journal);
  (*journal)->append(entry("a"));
  std::ofstream(folder_ + "/j", std::ios::app) << R"({"at":"2026-01)";
  const auto entries = (*journal)->read();
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 1U);
}

TEST_F(JournalFileTest, ALineThatWasCutOffCostsNoOtherLine) {
  {
    (*JournalFile::open(folder_ + "/j", {}))->append(entry("a"));
  }
  std::ofstream(folder_ + "/j", std::ios::app) << R"({"decision":{"at)";
  const auto journal = JournalFile::open(folder_ + "/j", {});
  ASSERT_TRUE(journal);
  (*journal)->append(entry("b"));
  const auto entries = (*journal)->read();
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[1].decision.by, "b");
}

TEST_F(JournalFileTest, TheFileBeforeThisOneIsReadAsWell) {
  auto journal = JournalFile::open(folder_ + "/j", {}, 1);
  ASSERT_TRUE(journal);
  (*journal)->append(entry("before"));
  const auto entries = (*journal)->read();
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().decision.by, "before");
}

TEST_F(JournalFileTest, ItDoesNotGrowForEver) {
  auto journal = JournalFile::open(folder_ + "/j", {}, 1000);
  ASSERT_TRUE(journal);
  for (int i = 0; i < 200; ++i) (*journal)->append(entry("node"));
  const auto entries = (*journal)->read();
  ASSERT_TRUE(entries);
  EXPECT_LT(entries->size(), 40U);
  EXPECT_TRUE(std::ifstream(folder_ + "/j.1").good());
}

TEST_F(JournalFileTest, AMissingFolderIsNamed) {
  const auto journal = JournalFile::open(folder_ + "/absent/j", {});
  ASSERT_FALSE(journal);
  EXPECT_NE(journal.error().text().find(folder_ + "/absent/j"), std::string::npos);
}

}  // namespace

}  // namespace spillway::host
