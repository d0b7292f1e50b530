// A lock that another descriptor holds: one try, or as many as the caller's patience allows.
#include "base/file_lock.h"

#include "base/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace spillway {
namespace {

class FileLockTest : public ::testing::Test {
 protected:
  /// Another descriptor of the same file: another holder.
  UniqueFd reopened() const {
    return UniqueFd(::open(fmt::format("/proc/self/fd/{}", file_.get()).c_str(), O_RDWR | O_CLOEXEC));
  }

  UniqueFd file_{::memfd_create("lock", MFD_CLOEXEC)};
};

TEST_F(FileLockTest, IsRefusedWhileAnotherHoldsIt) {
  ASSERT_TRUE(lock_exclusively(file_.get()));
  EXPECT_TRUE(lock_exclusively(file_.get())) << "it is ours already";
  const UniqueFd other = reopened();
  const Outcome refused = lock_exclusively(other.get());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  file_.reset();
  EXPECT_TRUE(lock_exclusively(other.get()));
}

TEST_F(FileLockTest, IsTriedAgainAsLongAsThereIsPatience) {
  ASSERT_TRUE(lock_exclusively(file_.get()));
  const UniqueFd other = reopened();
  int waits = 0;
  EXPECT_FALSE(lock_exclusively(other.get(), [&] { return ++waits < 3; }));
  EXPECT_EQ(waits, 3);
  EXPECT_TRUE(lock_exclusively(other.get(), [&] {
    if (++waits == 5) file_.reset();
    return true;
  }));
  EXPECT_EQ(waits, 5);
}

/// A child has copies of all open descriptors until its exec().
TEST_F(FileLockTest, GoesWithTheLastCopy) {
  ASSERT_TRUE(lock_exclusively(file_.get()));
  const UniqueFd other = reopened();
  UniqueFd copy(::dup(file_.get()));
  file_.reset();
  EXPECT_FALSE(lock_exclusively(other.get()));
  EXPECT_TRUE(lock_exclusively(other.get(), [&] {
    copy.reset();
    return true;
  }));
}

TEST_F(FileLockTest, PatienceEnds) {
  const LockPatience twice = lock_patience(2);
  EXPECT_TRUE(twice());
  EXPECT_TRUE(twice());
  EXPECT_FALSE(twice());
  EXPECT_FALSE(twice());
}

TEST_F(FileLockTest, WhatCannotBeLockedSaysSo) {
  const Outcome failed = lock_exclusively(-1);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace spillway
