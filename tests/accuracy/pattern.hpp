// A transfer pattern: hosts on access links to one ideal core switch, and flows among them.
// README.md gives the format.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace shoal::accuracy {

struct host {
  std::string name;
  std::uint64_t up_bits_per_second = 0;
  std::uint64_t down_bits_per_second = 0;
  std::int64_t delay_ns = 0; // the access link's, one way
};

struct flow {
  std::size_t from = 0; // index into hosts
  std::size_t to = 0;
  std::uint64_t bytes = 0;
  std::int64_t start_ns = 0;
};

struct pattern {
  std::vector<host> hosts;
  std::vector<flow> flows;
};

/// Reads a pattern file. Throws std::runtime_error with the file and line of the first fault.
inline pattern read_pattern(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot read");
  pattern result;
  std::map<std::string, std::size_t> index;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto fail = [&](const std::string& why) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + why);
    };
    std::istringstream words(line.substr(0, line.find('#')));
    std::string keyword;
    if (!(words >> keyword)) continue;
    if (keyword == "host") {
      host h;
      if (!(words >> h.name >> h.up_bits_per_second >> h.down_bits_per_second >> h.delay_ns))
        fail("expected: host NAME UP_bits_per_s DOWN_bits_per_s DELAY_ns");
      if (!index.emplace(h.name, result.hosts.size()).second)
        fail("host " + h.name + " is there twice");
      result.hosts.push_back(h);
    } else if (keyword == "flow") {
      std::string from, to;
      flow f;
      if (!(words >> from >> to >> f.bytes >> f.start_ns))
        fail("expected: flow FROM TO BYTES START_ns");
      if (!index.count(from) || !index.count(to)) fail("flow between unknown hosts");
      f.from = index[from];
      f.to = index[to];
      result.flows.push_back(f);
    } else {
      fail("unknown word " + keyword);
    }
  }
  return result;
}

} // namespace shoal::accuracy
