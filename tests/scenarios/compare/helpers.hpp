// Run directories made by hand, for tests of what reads them.
#pragma once

#include "netem/fabric.hpp"
#include "scenarios/observe/event_log.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <doctest/doctest.h>
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios::test {

/// A directory that is gone at the end of the test.
struct scratch {
  std::filesystem::path path;
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~scratch() { std::filesystem::remove_all(path); }
  scratch(const scratch&) = delete;
};

inline void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  auto file = output_file::create(path);
  REQUIRE(file.ok());
  (*file)->write(text);
  REQUIRE((*file)->commit().ok());
}

inline void write_log(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  write(path, packed);
}

inline std::string message(int time, const std::string& from, const std::string& to) {
  return R"({"time_ns":)" + std::to_string(time) + R"(,"what":"message","sent_ns":1,"from":")" +
         from + R"(","to":")" + to + R"(","type":"part_chunk","bytes":40})";
}
inline std::string killed(int time, const std::string& host) {
  return R"({"time_ns":)" + std::to_string(time) + R"(,"what":"host_killed","host":")" + host +
         R"("})";
}
inline std::string started(int time, const std::string& host) {
  return R"({"time_ns":)" + std::to_string(time) + R"(,"what":"host_started","host":")" + host +
         R"("})";
}
inline std::string timer(int time, const std::string& to) {
  return R"({"time_ns":)" + std::to_string(time) + R"(,"what":"timer","to":")" + to +
         R"(","type":"tick"})";
}

/// The shortest run.yaml that is a whole scenario.
inline std::string run_yaml(const std::string& more = "", const std::string& detail = "all") {
  return "name: made\nseed: 1\nstop_time: 1h\nworkload: {kind: timing}\n"
         "devices: {laptop: {samples_per_second: 10}}\n"
         "peers: {home: {count: 4, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
         "record: {events: " +
         detail + ", peers: 0}\n" + more;
}
inline std::string summary_json(const std::string& event_hash = "aa",
                                const std::string& loss = "2.5") {
  return R"({"scenario":"made","seed":1,"world":"sim","event_hash":")" + event_hash +
         R"(","state_hash":null,"wall_seconds":1.5,"peak_rss_bytes":7,"loss":{"final":)" + loss +
         R"(},"rounds":{"ok":4},"invariants":{"same_bits":{"checked":3,"violated":0}}})";
}

/// A directory with these files.
inline void make_run(const std::filesystem::path& path, const std::vector<std::string>& events,
                     const std::string& yaml = run_yaml(),
                     const std::string& summary = summary_json()) {
  write(path / "run.yaml", yaml);
  write(path / "summary.json", summary);
  write_log(path / "events.jsonl.zst", events);
}

} // namespace shoal::scenarios::test
