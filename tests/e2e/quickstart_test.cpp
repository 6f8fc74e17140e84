// The main promise: one command trains a real model on real text across volunteers that come and
// go. The result is as good as one machine's, and the same to the last bit each time.
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>

using namespace shoal::e2e;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* quickstart = "scenarios/quickstart.yaml";

/// The text of a JSON value as it was printed, so that floats are compared to the last bit.
std::string raw(const std::string& document, const std::string& key) {
  auto at = document.find('"' + key + "\": ");
  REQUIRE(at != std::string::npos);
  auto begin = at + key.size() + 4;
  return document.substr(begin, document.find_first_of(",\n", begin) - begin);
}

std::string identity(const std::string& document) {
  return raw(document, "event_hash") + " " + raw(document, "state_hash") + " " +
         raw(document, "final");
}

std::string short_run(std::vector<std::string> more, std::vector<std::string> environment = {}) {
  std::vector<std::string> arguments{"run",           quickstart, "--json",
                                     "--no-baseline", "--set",    "training.epochs=6"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  program_options options;
  options.environment = std::move(environment);
  auto run = run_program(arguments, options);
  INFO(run.err);
  REQUIRE(run.exit == 0);
  return identity(run.out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line + ",");
  for (std::string field; std::getline(in, field, ',');) out.push_back(field);
  return out;
}

std::string row_of(const std::vector<std::string>& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) out += (i == 0 ? "" : ",") + fields[i];
  return out;
}

/// The first row of the ledger whose samples were committed by a whole round.
std::size_t committed_row(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find(",committed,") != std::string::npos) return i;
  FAIL("nothing was committed");
  return 0;
}

void check_doctored_ledgers(const fs::path& directory) {
  const auto honest = lines_of(slurp(directory / "ledger.csv"));
  const auto at = committed_row(honest);
  auto with_row = [&](auto edit) {
    auto lines = honest;
    auto fields = fields_of(lines[at]);
    edit(fields);
    lines[at] = row_of(fields);
    return lines;
  };
  auto without_row = honest;
  without_row.erase(without_row.begin() + static_cast<std::ptrdiff_t>(at));
  auto twice = honest;
  twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), honest[at]);
  auto cut = honest;
  cut.pop_back();
  const std::pair<const char*, std::vector<std::string>> doctored[] = {
      {"a row left out", without_row},
      {"a row twice", twice},
      {"the end cut off", cut},
      {"another epoch", with_row([](auto& f) { f[3] = std::to_string(std::stoull(f[3]) + 1); })},
      {"another peer", with_row([](auto& f) { f[4] = std::to_string(std::stoull(f[4]) + 65536); })},
      {"another group", with_row([](auto& f) { f[5][0] = f[5][0] == '0' ? '1' : '0'; })},
      {"one sample fewer", with_row([](auto& f) { f[1] = std::to_string(std::stoull(f[1]) - 1); })},
      {"one sample more", with_row([](auto& f) { f[1] = std::to_string(std::stoull(f[1]) + 1); })},
      {"said to be returned",
       with_row([](auto& f) { f = {f[0], f[1], "returned", "", "", "", "", ""}; })},
      {"fewer parts", with_row([](auto& f) { f[6] = std::to_string(std::stoull(f[6]) - 1); })},
      {"no number", with_row([](auto& f) { f[0] = "x"; })},
  };
  for (const auto& [what, lines] : doctored) {
    INFO(what);
    spill(directory / "ledger.csv", joined(lines));
    auto verified = run_program({"verify-data", directory.string()});
    CHECK(verified.exit == 1);
    CHECK(verified.err.find(".csv:") !=
          std::string::npos); // the place, in the ledger or in what contradicts it
  }
  spill(directory / "ledger.csv", joined(honest));
  CHECK(run_program({"verify-data", directory.string()}).exit == 0);
}

} // namespace

TEST_CASE("the quickstart trains as well as one machine, loses peers, and says the same twice") {
  scratch_folder folder;
  auto directory = folder / "out";
  auto run = run_program({"run", quickstart, "--json", "--out", directory.string()});
  INFO(run.err);
  REQUIRE(run.exit == 0);
  auto summary = json::parse(run.out); // throws if there is anything but one document
  INFO(run.out);
  MESSAGE("loss " << summary["loss"].dump() << ", " << summary["wall_seconds"] << " s");
  auto first = summary["loss"]["first"].get<double>(),
       final = summary["loss"]["final"].get<double>();
  auto baseline = summary["loss"]["baseline"].get<double>(),
       bigram = summary["loss"]["bigram"].get<double>();
  CHECK(final < 0.6 * first);
  CHECK(final < bigram);
  // Not worse than one machine. The swarm has a tenth more samples in a step, and others: it may be
  // better.
  CHECK(final <= 1.03 * baseline);
  CHECK(final >= 0.94 * baseline);
  CHECK(summary["rounds"]["partial"] >= 1);
  std::uint64_t reasons = 0;
  for (const auto& [name, count] : summary["rounds"]["by_reason"].items())
    if (name != "none") reasons += count.get<std::uint64_t>();
  CHECK(reasons >= 1);
  CHECK(summary["invariants"].size() >= 10);
  for (const auto& [name, check] : summary["invariants"].items()) {
    INFO(name << ": " << check.dump());
    CHECK(check["checked"] > 0);
    CHECK(check["violated"] == 0);
  }
  for (auto kind : {"data", "averaging", "state", "control"}) {
    INFO(kind);
    CHECK(summary["bytes_sent"][kind] > 0);
  }
  CHECK(summary["peers"]["joined"] == 16);
  CHECK(summary["peers"]["left"] == 3);
  CHECK(summary["peers"]["alive"] == 13);
  for (auto name : {"run.yaml", "summary.json", "metrics.csv", "events.jsonl.zst", "ledger.csv",
                    "final.ckpt"}) {
    INFO(name);
    CHECK(fs::exists(directory / name));
  }
  CHECK(slurp(directory / "run.yaml").find("data_digest") != std::string::npos);

  auto verified = run_program({"verify-data", directory.string()});
  INFO(verified.err);
  CHECK(verified.exit == 0);
  check_doctored_ledgers(directory);

  // Without a directory and a baseline it is the same history.
  auto again = run_program({"run", quickstart, "--json", "--no-baseline"});
  REQUIRE(again.exit == 0);
  CHECK(identity(again.out) == identity(run.out));
}

TEST_CASE("neither threads nor the environment change the bits of a run, and the seed does") {
  auto reference = short_run({});
  CHECK(short_run({"-j", "1"}) == reference);
  CHECK(short_run({"-j", "2"}) == reference);
  CHECK(short_run({}, {"OMP_NUM_THREADS=1"}) == reference);
  CHECK(short_run({}, {"OMP_NUM_THREADS=2"}) == reference);
  CHECK(short_run({"--seed", "2"}) != reference);
}

TEST_CASE("Ctrl-C during the quickstart leaves a model and a whole directory") {
  scratch_folder folder;
  auto directory = folder / "out";
  program_options options;
  options.signal = SIGINT;
  options.signal_when = directory / "events.jsonl.zst.partial";
  auto run = run_program({"run", quickstart, "--json", "--out", directory.string()}, options);
  INFO(run.err);
  CHECK(run.exit == 130);
  CHECK(json::parse(run.out)["epochs"] < 110);
  for (auto name : {"run.yaml", "summary.json", "metrics.csv", "events.jsonl.zst", "ledger.csv",
                    "rounds.csv", "final.ckpt"}) {
    INFO(name);
    CHECK(fs::exists(directory / name));
  }
  CHECK(run_program({"verify-data", directory.string()}).exit == 0);
}
