// Goal: only pages that can be read from a library again are ever given back. Method: smaps as kernels print it, and
// this process's own.
#include "host/kernel/resident_memory.h"

#include "host/kernel/kernel_file.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

using Ranges = std::vector<MemoryRange>;

Ranges ranges_of(std::string_view smaps) {
  return clean_code_ranges(smaps, "/usr/bin/spillway");
}

TEST(ResidentMemory, CodeAndConstantsAreClean) {
  EXPECT_EQ(ranges_of("7f00-8f00 r-xp 00000000 fe:00 9   /usr/bin/spillway\nAnonymous:             0 kB\n"),
            (Ranges{{0x7f00, 0x1000}}));
  EXPECT_EQ(ranges_of("7f0000001000-7f0000003000 r-xp 00026000 fe:00 4711   /usr/lib/libc.so.6\n"
                      "Size:                  8 kB\n"
                      "Anonymous:             0 kB\n"
                      "VmFlags: rd ex mr mw me \n"
                      "7f0000003000-7f0000004000 r--p 00028000 fe:00 4711   /usr/lib/libc.so.6\n"
                      "Anonymous:             0 kB\n"),
            (Ranges{{0x7f0000001000, 0x2000}, {0x7f0000003000, 0x1000}}));
}

TEST(ResidentMemory, WhatHoldsPagesOfItsOwnStays) {
  EXPECT_EQ(ranges_of("7f00-8f00 r--p 00028000 fe:00 4711   /usr/lib/libc.so.6\nAnonymous:     4 kB\n"), Ranges{});
}

TEST(ResidentMemory, WritableSharedAnonymousAndOtherFilesStay) {
  for (const char* line :
       {"7f00-8f00 rw-p 00028000 fe:00 4711   /usr/lib/libc.so.6", "7f00-8f00 rw-p 00000000 00:00 0 ",
        "7f00-8f00 r--s 00000000 fe:00 4711   /usr/lib/libc.so.6", "7f00-8f00 r-xp 00000000 00:00 0   [vdso]",
        "7f00-8f00 r-xp 00000000 fe:00 9   /usr/bin/other", "7f00-8f00 r--p 00000000 fe:00 9   /data/db",
        "8f00-7f00 r-xp 00000000 fe:00 9   /usr/lib/libc.so.6", "7f00 r-xp", "zz-8f00 r-xp 0 0 0 /l.so"}) {
    EXPECT_EQ(ranges_of(std::string(line) + "\nAnonymous:             0 kB\n"), Ranges{}) << line;
  }
  EXPECT_EQ(ranges_of("7f00-8f00 r-xp 00026000 fe:00 4711   /usr/lib/libc.so.6\n"), Ranges{})
      << "nothing says that it is clean";
}

TEST(ResidentMemory, TheProcessGoesOnWithWhatItGaveBack) {
  const Result<std::string> smaps = read_file("/proc/self/smaps");
  ASSERT_TRUE(smaps) << smaps.error().text();
  EXPECT_FALSE(ranges_of(*smaps).empty()) << "the C library at least";
  give_back_start_up_pages();
  EXPECT_TRUE(read_file("/proc/self/smaps"));
}

}  // namespace
}  // namespace spillway::host
