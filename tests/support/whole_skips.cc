// In CI (the environment variable CI is set) a suite whose tests were all skipped fails its binary: on a machine that
// CI uses nothing should be missing, and a suite that never runs proves nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace spillway::support {
namespace {

class WholeSkips : public ::testing::EmptyTestEventListener {
  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    if (suite.test_to_run_count() == 0 || suite.skipped_test_count() < suite.test_to_run_count()) return;
    std::fprintf(stderr, "in CI nothing is skipped: every test of %s was\n", suite.name());
    any_ = true;
  }

  void OnTestProgramEnd(const ::testing::UnitTest& program) override {
    std::fflush(stdout);
    if (any_ && program.Passed()) std::_Exit(1);
  }

  bool any_ = false;
};

const bool kListens = [] {
  if (std::getenv("CI") != nullptr) ::testing::UnitTest::GetInstance()->listeners().Append(new WholeSkips);
  return true;
}();

}  // namespace
}  // namespace spillway::support
