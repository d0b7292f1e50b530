// Files with secrets: a file, folder or link of another user is not used for them.
#include "wire/tls/private_file.h"

#include "wire/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kSomebodyElse = 65534;

std::string problem_of(const Outcome& outcome) {
  return outcome ? "" : outcome.error().text();
}

void set_mode(const std::string& path, mode_t mode) {
  ASSERT_EQ(::chmod(path.c_str(), mode), 0) << path;
}

TEST(PrivateFile, IsItsOwners) {
  const TempFolder folder;
  ASSERT_TRUE(replace_file(folder / "key", "secret"));
  EXPECT_EQ(folder.read("key"), "secret");
  EXPECT_EQ(folder.mode("key"), 0600U);
  ASSERT_TRUE(replace_file(folder / "key", "other"));
  EXPECT_EQ(read_private_file(folder / "key"), "other");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no draft is left";
}

/// Another user has made the file, or a link, at the path to be written.
TEST(PrivateFile, IsNotWrittenIntoWhatIsThere) {
  const TempFolder folder;
  folder.write("victim", "mine");
  folder.write("key.new", "");
  set_mode(folder / "key.new", 0666);
  ASSERT_TRUE(replace_file(folder / "key", "secret"));
  EXPECT_EQ(folder.read("key.new"), "");
  EXPECT_EQ(folder.mode("key"), 0600U);

  std::filesystem::create_symlink(folder / "victim", folder / "link.new");
  ASSERT_TRUE(replace_file(folder / "link", "secret"));
  std::filesystem::create_symlink(folder / "victim", folder / "final");
  ASSERT_TRUE(replace_file(folder / "final", "secret"));
  EXPECT_EQ(folder.read("victim"), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "final"));
  EXPECT_EQ(folder.read("final"), "secret");
}

TEST(PrivateFile, IsReadOnlyIfNoOtherUserCouldWriteIt) {
  const TempFolder folder;
  ASSERT_TRUE(replace_file(folder / "key", "secret"));
  const auto problem = [&](const std::string& name) {
    const auto read = read_private_file(folder / name);
    return read ? "" : read.error().text();
  };
  set_mode(folder / "key", 0640);
  EXPECT_EQ(problem("key"), "");
  for (const mode_t mode : {0644, 0660, 0602}) {
    set_mode(folder / "key", mode);
    EXPECT_THAT(problem("key"), HasSubstr("is open to others")) << mode;
  }
  set_mode(folder / "key", 0600);
  std::filesystem::create_symlink(folder / "key", folder / "link");
  EXPECT_THAT(problem("link"), HasSubstr("symbolic link"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(problem("pipe"), HasSubstr("expected a file"));
  EXPECT_EQ(read_private_file(folder / "none").error().code, ErrorCode::kNotFound);
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown((folder / "key").c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(problem("key"), HasSubstr("belongs to user 65534"));
}

TEST(PrivateFolder, IsItsOwners) {
  const TempFolder folder;
  EXPECT_TRUE(make_private_folder(folder / "pki"));
  EXPECT_EQ(folder.mode("pki"), 0700U);
  EXPECT_TRUE(make_private_folder(folder / "pki"));
  set_mode(folder / "pki", 0755);
  EXPECT_TRUE(make_private_folder(folder / "pki"));
  for (const mode_t mode : {0770, 0777, 01777, 0702}) {
    set_mode(folder / "pki", mode);
    EXPECT_THAT(problem_of(make_private_folder(folder / "pki")), HasSubstr("others may write into it")) << mode;
  }
  set_mode(folder / "pki", 0700);
  std::filesystem::create_directory_symlink(folder / "pki", folder / "link");
  EXPECT_THAT(problem_of(make_private_folder(folder / "link")), HasSubstr("not a link"));
  folder.write("file", "");
  EXPECT_THAT(problem_of(make_private_folder(folder / "file")), HasSubstr("expected a folder"));
  EXPECT_FALSE(make_private_folder(folder / "no/parent"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  ASSERT_EQ(::chown((folder / "pki").c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(problem_of(make_private_folder(folder / "pki")), HasSubstr("belongs to user 65534"));
}

}  // namespace
}  // namespace spillway::wire
