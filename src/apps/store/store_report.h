// Reports of the store commands (check, compact, backup), as text and as JSON. Thread: main.
#pragma once

#include "apps/store/store_copy.h"
#include "base/time.h"
#include "cli/flags/command_line.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/check.h"
#include "store/sqlite/upkeep/defrag.h"
#include "store/sqlite/upkeep/restore.h"

#include <string>

namespace spillway::apps {

/// "12 B", "1.5 KiB", "20.0 MiB".
std::string size_text(Bytes bytes);

// Prints to standard output. `file`: the file that was made or checked.
void print(cli::OutputFormat format, const std::string& file, const store::sqlite::BackupReport& report, Duration took);
void print(cli::OutputFormat format, const std::string& file, const store::sqlite::RestoreReport& report,
           Duration took);
void print(cli::OutputFormat format, const std::string& file, const store::sqlite::CheckReport& report);
void print(cli::OutputFormat format, const std::string& file, const store::sqlite::DefragReport& report, Duration took);

void print(cli::OutputFormat format, const std::string& target, const CopyReport& report, Duration took);

/// Problems, one on each line.
std::string problem_lines(const std::string& file, const store::sqlite::Findings& findings);

}  // namespace spillway::apps
