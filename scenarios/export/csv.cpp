// Tables for spreadsheets and data frames, of what the run directory has only as JSON lines.
#include "scenarios/export/export_formats.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace shoal::scenarios {

// A format may name its parts as other formats name theirs.
namespace csv_format_parts {
namespace {

/// A field in the quotes of RFC 4180, if its content needs them.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string seconds(duration at) {
  return fmt::format("{}.{:09}", at.count() / 1'000'000'000, at.count() % 1'000'000'000);
}

std::string spans(const recorded_run& run, const std::vector<recorded_span>& all, bool rounds) {
  std::string out = rounds ? "host,epoch,group,outcome,reason,begin_s,end_s\n"
                           : "host,epoch,phase,begin_s,end_s\n";
  for (const auto& each : all) {
    out += fmt::format("{},{},", field(run.hosts[each.host]), each.epoch);
    out += rounds ? fmt::format("{},{},{}", each.group, each.what, each.reason) : each.what;
    out += fmt::format(",{},{}\n", seconds(each.begin), seconds(each.end));
  }
  return out;
}

std::string rounds(const recorded_run& run) {
  std::string out = "epoch,group,outcome,reason,members,samples,begin_s,end_s\n";
  for (const auto& each : run.rounds)
    out +=
        fmt::format("{},{},{},{},{},{},{},{}\n", each.epoch, each.group, each.outcome, each.reason,
                    each.members, each.samples, seconds(each.begin), seconds(each.end));
  return out;
}

std::string faults(const recorded_run& run) {
  std::string out = "action,hosts,begin_s,end_s\n";
  for (const auto& each : run.faults)
    out += fmt::format("{},{},{},{}\n", each.action,
                       field(fmt::format("{}", fmt::join(each.hosts, ";"))), seconds(each.begin),
                       seconds(each.end));
  return out;
}

std::string transfers(const recorded_run& run) {
  std::string out = "transfer,from,to,type,bytes,sent_s,begun_s,left_s,arrives_s,cut\n";
  for (const auto& each : run.transfers)
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{}\n", each.number,
                   field(each.from), field(each.to), each.type, each.bytes, seconds(each.sent),
                   seconds(each.begun), seconds(each.left), seconds(each.arrives), each.cut);
  return out;
}

result<std::string> write(const recorded_run& run, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return failure{fmt::format("'{}' cannot be made: {}", to.string(), error.message())};
  const std::pair<const char*, std::string> tables[] = {
      {"phases.csv", spans(run, run.phases, false)},
      {"member_rounds.csv", spans(run, run.member_rounds, true)},
      {"rounds.csv", rounds(run)},
      {"faults.csv", faults(run)},
      {"transfers.csv", transfers(run)}};
  for (const auto& [name, content] : tables)
    if (auto written = write_file(to / name, content); !written) return failure{written.error()};
  return std::string("phases.csv, member_rounds.csv, rounds.csv, faults.csv, transfers.csv");
}

} // namespace
} // namespace csv_format_parts

export_format csv_format() {
  using namespace csv_format_parts;
  return {"csv", "DIR", "tables of phases, rounds, faults and transfers; metrics.csv is in the run",
          "tables", write};
}

} // namespace shoal::scenarios
