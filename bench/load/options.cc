#include "load/options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace spillway::load {
namespace {

double milliseconds_of(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string codes(const Tally& tally, std::string_view format, std::string_view between) {
  std::string out;
  for (const auto& [code, count] : tally.errors) {
    if (!out.empty()) out += between;
    out += fmt::format(fmt::runtime(format), code, count);
  }
  return out;
}

std::string line(std::string_view what, const Tally& tally, double seconds) {
  if (tally.due == 0) return {};
  const Histogram& times = tally.latency;
  const std::string errors = codes(tally, "{}: {}", ", ");
  return fmt::format(
      "{}: offered {:.0f}/s, achieved {:.0f}/s, p50 {:.2f} ms, p99 {:.2f} ms, p99.9 {:.2f} ms, max {:.2f} ms, "
      "unanswered {}, "
      "errors {}\n",
      what, static_cast<double>(tally.due) / seconds, static_cast<double>(tally.in_time) / seconds,
      milliseconds_of(times.percentile(0.5)), milliseconds_of(times.percentile(0.99)),
      milliseconds_of(times.percentile(0.999)), milliseconds_of(times.max()), tally.unanswered,
      errors.empty() ? "none" : errors);
}

std::string times_json(const Histogram& times) {
  return fmt::format(R"("count":{},"p50_ms":{:.3f},"p99_ms":{:.3f},"p999_ms":{:.3f},"max_ms":{:.3f})", times.count(),
                     milliseconds_of(times.percentile(0.5)), milliseconds_of(times.percentile(0.99)),
                     milliseconds_of(times.percentile(0.999)), milliseconds_of(times.max()));
}

std::string tally_json(const Tally& tally, double seconds) {
  return fmt::format(
      R"({{"offered_per_second":{:.1f},"achieved_per_second":{:.1f},"answered":{},"unanswered":{},{},"errors":{{{}}}}})",
      static_cast<double>(tally.due) / seconds, static_cast<double>(tally.in_time) / seconds, tally.answered,
      tally.unanswered, times_json(tally.latency), codes(tally, R"("{}":{})", ","));
}

void add_options(CLI::App& app, Options& out, std::string& server, std::string& form) {
  app.add_option("mode", out.mode, "fill: creates the leases; renew, list, watch, mix: renewals beside lists")
      ->required()
      ->check(CLI::IsMember({"fill", "renew", "list", "watch", "mix"}));
  app.add_option("--server", server, "HOST:PORT, a numeric address")->required();
  app.add_option("--ca", out.authority_file, "PEM of the server's authority; without it plain HTTP");
  app.add_option("--cert", out.certificate_file, "PEM of the client's certificate");
  app.add_option("--key", out.key_file, "PEM of its key");
  app.add_option("--token-file", out.token_file, "a bearer token instead of a certificate");
  app.add_option("--namespace", out.ns, "of the leases");
  app.add_option("--leases", out.leases)->check(CLI::Range(1, 1'000'000));
  app.add_option("--rate", out.rate, "renewals a second")->check(CLI::Range(0.1, 1e6));
  app.add_option("--connections", out.connections, "for renewals")->check(CLI::Range(1, 10'000));
  app.add_flag("--protobuf", out.protobuf, "renewals and their answers in protobuf, as kubelets send them");
  app.add_flag(
      "--general", out.general,
      "write an escape, in protobuf an unknown field, into each renewal, which servers do not have a short way for");
  app.add_option("--watches", out.watches)->check(CLI::Range(0, 10'000));
  app.add_option("--general-watches", out.general_watches, "of them without a name")->check(CLI::Range(0, 10'000));
  app.add_option("--list-rate", out.list_rate, "lists a second")->check(CLI::Range(0.0, 1e5));
  app.add_option("--list-connections", out.list_connections)->check(CLI::Range(1, 10'000));
  app.add_option("--list-path", out.list_path);
  app.add_option("--warm-up", out.warm_up_seconds, "seconds that are not measured")->check(CLI::Range(0.0, 60.0));
  app.add_option("--seconds", out.seconds, "that are")->check(CLI::Range(0.1, 600.0));
  app.add_option("-o,--output", form)->check(CLI::IsMember({"text", "json"}));
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options out;
  std::string server;
  std::string form = "text";
  CLI::App app("Load on an API server with fixed times of arrival: a request counts from when it was due");
  add_options(app, out, server, form);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    std::exit(app.exit(problem) == 0 ? 0 : 2);
  }
  const std::size_t colon = server.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(server.c_str() + colon + 1);
  if (port <= 0 || port > 65'535) return make_error(ErrorCode::kInvalid, "--server: {}, expected HOST:PORT", server);
  out.host = server.substr(0, colon);
  out.port = static_cast<std::uint16_t>(port);
  out.as_json = form == "json";
  if (out.general_watches > out.watches) out.watches = out.general_watches;
  return out;
}

std::string to_text(const Options& options, const Report& report) {
  std::string out = line("renewals", report.renewals, report.seconds) + line("lists", report.lists, report.seconds);
  if (options.watches != 0) {
    out += fmt::format("watches: {} open, {} lost, {:.0f} events/s, age p50 {:.2f} ms, p99 {:.2f} ms, max {:.2f} ms\n",
                       report.watches_open, report.watches_lost, static_cast<double>(report.events) / report.seconds,
                       milliseconds_of(report.event_age.percentile(0.5)),
                       milliseconds_of(report.event_age.percentile(0.99)), milliseconds_of(report.event_age.max()));
  }
  return out;
}

std::string to_json(const Options& options, const Report& report) {
  return fmt::format(
      R"({{"mode":"{}","seconds":{:.3f},"renewals":{},"lists":{},"list_bytes":{},"watches_open":{},"watches_lost":{},"events":{{"per_second":{:.1f},{}}}}})"
      "\n",
      options.mode, report.seconds, tally_json(report.renewals, report.seconds),
      tally_json(report.lists, report.seconds), report.list_bytes, report.watches_open, report.watches_lost,
      static_cast<double>(report.events) / report.seconds, times_json(report.event_age));
}

}  // namespace spillway::load
