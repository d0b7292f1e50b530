// The contract between a container's supervisor and successive agents: a page of shared memory, the numbers of the
// supervisor's descriptors, and its orders. Numbers and members keep their meaning: an agent of any later version has
// to support supervisors that an earlier one started. Additions are made at the end, with a new version. Thread: any
// (one writer per member). Source: docs/adr/0013-supervised-pods.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spillway::host {

inline constexpr std::uint32_t kSupervisorMagic = 0x53'70'69'6C;
inline constexpr std::uint32_t kSupervisorVersion = 1;
inline constexpr std::size_t kLogPathMax = 2048;  // with the terminating zero
inline constexpr std::size_t kStateBytes = 4096;
// limit of the container's record, which follows the page
inline constexpr std::size_t kRecordBytesMax = std::size_t{4} << 20;

enum class SupervisedPhase : std::uint32_t {
  kRuns,      // or has not begun
  kEnded,     // wait_status and finished_at hold
  kRecorded,  // the end of the process is recorded, and the process reaped
};

/// The beginning of the shared memory. Written by the agent before the start, except for members that name their
/// writer.
struct SupervisorState {
  std::uint32_t magic = kSupervisorMagic;
  std::uint32_t version = kSupervisorVersion;
  std::int32_t process = 0;  // pid of the container's first process, in the machine's numbers; by its creator
  SupervisedPhase phase = SupervisedPhase::kRuns;  // by the supervisor
  std::int32_t wait_status = 0;                    // exit status as of wait(2); written by the supervisor
  std::int64_t finished_at_micros = 0;             // since 1970; by the supervisor
  std::uint64_t log_bytes = 0;                     // bytes in all parts of the log; by the supervisor
  std::uint32_t log_fails = 0;                     // 1: the last records could not be written; by the supervisor
  std::uint32_t record_bytes = 0;
  std::int64_t started_at_micros = 0;
  std::int64_t log_file_max = 0;  // bytes
  std::int32_t log_files_max = 0;
  char log_path[kLogPathMax] = {};
};

static_assert(sizeof(SupervisorState) <= kStateBytes);

/// Numbers of the supervisor's descriptors. Unused ones are closed.
enum SupervisorFd : int {
  kStateFd = 3,
  kOrdersFd = 4,      // socket on which the supervisor receives orders
  kGiveOrdersFd = 5,  // the agent's end of that socket, kept for the next agent
  kStdoutFd = 6,      // the container's output; its terminal, if it has one
  kStderrFd = 7,
  kStdinFd = 8,     // the write end of the container's input
  kProcessFd = 9,   // the container's first process
  kVolumesFd = 10,  // the mount namespace of the node's volumes
  kIpcFd = 11,      // namespaces of the pod
  kNetworkFd = 12,
  kHostNameFd = 13,
  kMountsFd = 14,
  kUsersFd = 15,
  kRootFd = 16,        // the root directory of the container's view
  kSupervisorFds = 17  // number behind the last descriptor
};

/// Orders, one byte each. kListen and kFinish carry a descriptor.
enum class SupervisorOrder : char {
  kListen = 'L',      // copy the outputs there: packets of api::Channel's number and the output; the first one, {0},
                      // confirms the order
  kFinish = 'F',      // every process has ended: write what is left to the log, then close the descriptor
  kCollect = 'C',     // the end is written down
  kCloseInput = 'I',  // the container's input has ended
  kQuit = 'Q',        // the supervisor is not needed any more
};

}  // namespace spillway::host
