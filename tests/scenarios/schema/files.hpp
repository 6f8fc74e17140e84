// Reading files and rendering whole results, for the tests of the schema. Tests start in the
// repository's root.
#pragma once

#include "scenarios/schema/load.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace shoal::scenarios::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Set SHOAL_UPDATE_EXPECTED to write what is compared instead, and then read the difference.
inline bool updating() {
  return std::getenv("SHOAL_UPDATE_EXPECTED") != nullptr;
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    if (item.path().extension() == ".yaml") files.push_back(item.path());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string rendered(const load_result& result) {
  std::string out;
  for (const diagnostic& what : result.errors) out += render(what);
  for (const diagnostic& what : result.warnings) out += render(what);
  return out;
}

/// The shortest scenario there is, with `more` appended.
inline std::string small(const std::string& more = "") {
  return "stop_time: 1h\n"
         "workload: {kind: timing}\n"
         "devices: {laptop: {samples_per_second: 10}}\n"
         "peers: {home: {count: 4, up: 10Mbit, down: 50Mbit, device: laptop}}\n" +
         more;
}

} // namespace shoal::scenarios::test
