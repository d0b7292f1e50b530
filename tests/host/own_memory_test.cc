// Goal: the pages of a process are counted as its kernel prints them. Method: texts as kernels print them, and this
// process's own.
#include "host/kernel/own_memory.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

TEST(OwnMemory, StatusIsRead) {
  OwnMemory memory;
  parse_status("Name:\tspillway\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nRssFile:\t   40 kB\nThreads:\t7\n", memory);
  EXPECT_EQ(memory.resident, 200U * 1024);
  EXPECT_EQ(memory.resident_most, 300U * 1024);
  EXPECT_EQ(memory.of_files, 40U * 1024);
  EXPECT_EQ(memory.threads, 7U);
  parse_status("VmRSS:\nVmHWM: many kB\n", memory);
  EXPECT_EQ(memory.resident, 0U) << "a line without a number";
}

TEST(OwnMemory, StacksAreRecognisedByTheirSize) {
  OwnMemory memory;
  parse_stacks(
      "7f00-8f00 rw-p 00000000 00:00 0 \nSize:               8192 kB\nRss:                  12 kB\n"
      "8f00-9f00 rw-p 00000000 00:00 0 \nSize:               8188 kB\nRss:                   8 kB\n"
      "9f00-af00 rw-p 00000000 00:00 0 \nSize:               4096 kB\nRss:                4096 kB\n"
      "af00-bf00 r--p 00000000 fe:00 9   /usr/lib/a.so\nSize:               8192 kB\nRss:                 100 kB\n"
      "bf00-cf00 rw-p 00000000 00:00 0   [stack]\nSize:                132 kB\nRss:                  20 kB\n",
      8'192U * 1024, memory);
  EXPECT_EQ(memory.stack_count, 3U);
  EXPECT_EQ(memory.stacks, 40U * 1024);
}

TEST(OwnMemory, OfThisProcess) {
  const OwnMemory memory = read_own_memory();
  EXPECT_GT(memory.resident, 0U);
  EXPECT_GE(memory.resident_most, memory.resident);
  EXPECT_GE(memory.threads, 1U);
  EXPECT_GE(memory.stack_count, 1U);
  EXPECT_GT(memory.stacks, 0U);
  EXPECT_GT(memory.allocator_used, 0U);
}

}  // namespace
}  // namespace spillway::host
