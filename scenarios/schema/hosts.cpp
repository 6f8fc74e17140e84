#include "scenarios/schema/hosts.hpp"

#include "actors/conduct/conducts.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace shoal::scenarios {
namespace {

/// Matches the set that begins after '[' at `at`; moves `at` behind ']'. Without ']' the '[' is a
/// plain character.
bool in_set(std::string_view pattern, std::size_t& at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  const std::size_t end = pattern.find(']', i + 1);
  if (end == std::string_view::npos) {
    const bool same = c == '[';
    ++at;
    return same;
  }
  bool found = false;
  while (i < end) {
    if (i + 2 < end && pattern[i + 1] == '-') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 3;
    } else {
      found = found || pattern[i] == c;
      ++i;
    }
  }
  at = end + 1;
  return found != negated;
}

} // namespace

std::string host_name(const peer_group& group, std::uint64_t index) {
  return index < group.names.size() ? group.names[index] : group.name + "-" + std::to_string(index);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::vector<host_spec> expand_hosts(const scenario& from) {
  std::vector<host_spec> hosts;
  std::size_t line = 0;
  for (const peer_group& group : from.peers) {
    for (std::uint64_t i = 0; i < group.count; ++i) {
      if (i % group.hosts_per_line == 0) ++line;
      hosts.push_back({host_name(group, i), group.name, group.region, group.up, group.down,
                       group.buffer, group.access, group.coordinates, line,
                       &group.role.definition(), group.device,
                       group.start + static_cast<duration::rep>(i) * group.start_spacing,
                       group.boot_time, group.absent, group.nat, group.conduct});
    }
  }
  return hosts;
}

std::vector<std::string> shard_hosts(const scenario& from) {
  auto names = from.data.names;
  for (std::uint64_t i = names.size(); i < from.data.replicas; ++i)
    names.push_back(shard_prefix + std::to_string(i));
  return names;
}

const actors::conduct_options& conduct_of_shard(const scenario& from, std::size_t number) {
  static const actors::conduct_options honest;
  return number < from.data.attackers ? from.data.conduct : honest;
}

std::set<std::string> attacking_hosts(const scenario& from, std::span<const host_spec> hosts) {
  std::set<std::string> out;
  for (const auto& host : hosts)
    if (actors::is_attack(host.conduct)) out.insert(host.name);
  const auto shards = shard_hosts(from);
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (actors::is_attack(conduct_of_shard(from, i))) out.insert(shards[i]);
  return out;
}

bool selects_shard(std::string_view select, std::string_view name) {
  return select.starts_with(shard_prefix) && glob_match(select, name);
}

bool glob_match(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    if (p < pattern.size()) {
      std::size_t next = p + 1;
      bool same = pattern[p] == '?' || pattern[p] == name[n];
      if (pattern[p] == '[') {
        next = p;
        same = in_set(pattern, next, name[n]);
      }
      if (same) {
        p = next;
        ++n;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    p = star + 1;
    n = ++resume;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool may_overlap(std::string_view pattern, std::string_view other) {
  const auto beginning = [](std::string_view of) { return of.substr(0, of.find_first_of("*?[")); };
  const auto ours = beginning(pattern), theirs = beginning(other);
  const auto common = std::min(ours.size(), theirs.size());
  if (ours.substr(0, common) != theirs.substr(0, common)) return false;
  // A name without wildcards.
  if (ours.size() == pattern.size()) return glob_match(other, pattern);
  if (theirs.size() == other.size()) return glob_match(pattern, other);
  return true;
}

std::vector<std::string> files_matching(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t matches{};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
      std::error_code error;
      const auto real = std::filesystem::canonical(matches.gl_pathv[i], error);
      if (!error && std::filesystem::is_regular_file(real, error) && !error)
        files.push_back(real.string());
    }
  }
  ::globfree(&matches);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::vector<std::string> data_files(const scenario& from) {
  std::vector<std::string> all;
  for (const std::string& pattern : from.data.files)
    for (std::string& file : files_matching(pattern)) all.push_back(std::move(file));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

} // namespace shoal::scenarios
