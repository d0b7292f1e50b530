// The load on a server, its rates, and the results. Thread: any (values).
#pragma once

#include "base/error.h"
#include "base/time.h"

#include "load/histogram.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace spillway::load {

struct Options {
  std::string mode;  // fill, renew, list, watch, mix
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string authority_file;    // empty: plain HTTP
  std::string certificate_file;  // the client's certificate, with key_file
  std::string key_file;
  std::string token_file;
  std::string ns = "kube-node-lease";
  std::size_t leases = 1'000;
  double rate = 500;  // renewals a second
  std::size_t connections = 32;
  std::size_t watches = 0;          // number of all watches
  std::size_t general_watches = 0;  // watches of every lease; the others are narrowed to one each
  double list_rate = 0;             // lists a second
  std::size_t list_connections = 8;
  std::string list_path = "/api/v1/pods";
  double warm_up_seconds = 1;
  double seconds = 5;
  bool protobuf = false;  // renewals and answers in protobuf; otherwise in JSON
  bool general = false;   // bodies in a form that no server recognizes as a heartbeat
  bool as_json = false;
};

/// Errors name the option; the process ends after --help.
Result<Options> parse_options(int argc, char** argv);

/// Counts of the requests of one kind.
struct Tally {
  std::uint64_t due = 0;       // arrivals in the time that is measured
  std::uint64_t answered = 0;  // answers with 2xx
  std::uint64_t in_time = 0;   // 2xx answers within the measured time
  std::uint64_t unanswered = 0;
  std::map<int, std::uint64_t> errors;  // by HTTP code; 0: the connection was lost
  Histogram latency;                    // from the intended arrival to the end of the answer
};

struct Report {
  double seconds = 0;  // the measured time
  Tally renewals;
  Tally lists;
  std::uint64_t list_bytes = 0;
  std::size_t watches_open = 0;
  std::uint64_t watches_lost = 0;
  std::uint64_t events = 0;
  Histogram event_age;  // from the intended arrival of a renewal to its event
};

std::string to_text(const Options& options, const Report& report);
std::string to_json(const Options& options, const Report& report);

}  // namespace spillway::load
