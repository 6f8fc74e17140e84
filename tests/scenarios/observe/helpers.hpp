// Observations as a correct swarm would make them, for tests to spoil.
#pragma once

#include "actors/averaging/observations.hpp"
#include "scenarios/observe/rounds.hpp"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios::test {

using namespace std::chrono_literals;
using actors::sample_range;

inline actors::group_id group(std::uint64_t n) {
  return {0xabcd, n};
}
inline actors::state_id state(std::uint64_t n) {
  return {0x5747, n};
}

inline std::uint64_t count(const std::vector<sample_range>& ranges) {
  std::uint64_t sum = 0;
  for (const sample_range& range : ranges) sum += range.count;
  return sum;
}

inline actors::contributed contribution(std::uint64_t epoch, std::uint32_t member,
                                        std::uint32_t members, std::vector<sample_range> samples,
                                        std::vector<float> values) {
  actors::contributed out;
  out.group = group(epoch);
  out.epoch = epoch;
  out.member = member;
  out.members = members;
  out.weight = count(samples);
  out.samples = std::move(samples);
  out.values = payload(std::move(values));
  return out;
}

inline actors::round_ended ending(std::uint64_t epoch, std::uint32_t member, std::uint32_t members,
                                  actors::outcome outcome, actors::reason reason,
                                  std::vector<actors::part_outcome> parts = {},
                                  std::vector<float> mean = {}) {
  actors::round_ended out;
  out.group = group(epoch);
  out.epoch = epoch;
  out.member = member;
  out.members = members;
  out.outcome = outcome;
  out.reason = reason;
  out.parts = std::move(parts);
  if (!mean.empty()) out.values = payload(std::move(mean));
  return out;
}

/// A finished round of two members. Member 0 has 3 samples and the values {1, 2}, member 1 has one
/// sample and {5, -2}. The mean is {2, 1}; part 0 is value 0, part 1 is value 1.
inline swarm_round good_round() {
  swarm_round out;
  out.group = group(1);
  out.epoch = 1;
  out.ended = 10s;
  out.completed = true;
  out.outcome = actors::outcome::ok;
  out.members.resize(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    round_member& who = out.members[i];
    who.known = who.contributed = who.ended = true;
    who.peer = 100 + i;
    who.outcome = actors::outcome::ok;
  }
  out.members[0].weight = 3;
  out.members[0].samples = {{0, 3}};
  out.members[0].values = payload(std::vector<float>{1, 2});
  out.members[1].weight = 1;
  out.members[1].samples = {{3, 1}};
  out.members[1].values = payload(std::vector<float>{5, -2});
  out.parts = {{0, 1, {0, 1}, 4}, {1, 2, {0, 1}, 4}};
  out.mean = payload(std::vector<float>{2, 1});
  return out;
}

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

} // namespace shoal::scenarios::test
