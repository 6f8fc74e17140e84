#include "scenarios/runner/node.hpp"

#include "actors/conduct/conducts.hpp"
#include "kernels/base/check.hpp"
#include "netem/wire/certificates.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/option_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

result<node_role> role_of(const scenario& what, const node_options& node,
                          std::vector<host_spec>& hosts) {
  node_role out;
  const auto shards = shard_hosts(what);
  if (const auto found = std::find(shards.begin(), shards.end(), node.name);
      found != shards.end()) {
    if (!node.group.empty())
      return failure{
          fmt::format("'{}' is a data shard of the scenario, and of no group of peers", node.name)};
    out.shard = static_cast<std::size_t>(found - shards.begin());
    return out;
  }
  const auto same_name = [&](const host_spec& h) { return h.name == node.name; };
  const auto found = std::find_if(hosts.begin(), hosts.end(), same_name);
  if (found != hosts.end() && (node.group.empty() || node.group == found->group)) {
    out.peer = static_cast<std::size_t>(found - hosts.begin());
    return out;
  }
  std::string groups;
  for (const auto& group : what.peers) groups += (groups.empty() ? "" : ", ") + group.name;
  if (node.group.empty())
    return failure{fmt::format("the scenario has no host '{}'. Its hosts are {}-0 and so on, "
                               "and {}. Use one of these names, or choose the group of a new host "
                               "with --group: {}",
                               node.name, what.peers.front().name, shards.front(), groups)};
  const auto like = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const host_spec& h) { return h.group == node.group; });
  if (like == hosts.end())
    return failure{
        fmt::format("the scenario has no group '{}' of peers; there are {}", node.group, groups)};
  if (found != hosts.end())
    return failure{
        fmt::format("'{}' is a host of group '{}', not '{}'", node.name, found->group, node.group)};
  auto added = *like;
  added.name = node.name;
  hosts.push_back(std::move(added));
  out.peer = hosts.size() - 1;
  return out;
}

result<void> can_behave(const std::string& conduct, const node_role& role,
                        const std::string& name) {
  const auto* found = actors::conducts().find(conduct);
  if (found == nullptr || found->kind != actors::conduct_kind::attack ||
      found->of_shards == role.shard.has_value())
    return {};
  const auto [can, is] =
      found->of_shards ? std::pair{"data shard", "peer"} : std::pair{"peer", "data shard"};
  return failure{fmt::format("--conduct: '{}' is an attack of a {}, and '{}' is a {}", conduct, can,
                             name, is)};
}

namespace {

constexpr std::int64_t year_2026_ns = 1'767'225'600'000'000'000, period_ns = 2'500'000'000;
constexpr std::int64_t last_period = (std::int64_t{1} << 30) - 2;

} // namespace

std::uint64_t index_block_of(std::int64_t utc_ns, std::size_t replica) {
  SHOAL_CHECK(replica < 16, "a shard has at most 16 replicas");
  // Block 0 belongs to a replica that asks no other one. A wrong clock must not lead there.
  const auto period = std::clamp((utc_ns - year_2026_ns) / period_ns, std::int64_t{1}, last_period);
  return static_cast<std::uint64_t>(period) << 4 | replica;
}

duration shard_start_delay(std::int64_t utc_ns) {
  return duration{period_ns - std::max(utc_ns - year_2026_ns, std::int64_t{0}) % period_ns};
}

std::string contribution_text(const contribution_total& what, const std::string& host,
                              const std::string& scenario_hash, std::int64_t started_utc_ns,
                              std::int64_t until_utc_ns) {
  return fmt::format(
      "host: {}\nscenario: {}\nsince: {}\nuntil: {}\nlast_epoch: {}\nrounds: {}\nsamples: {}\n",
      host, scenario_hash, netem::wire::utc_text(started_utc_ns),
      netem::wire::utc_text(until_utc_ns), what.epoch, what.rounds, what.samples);
}

result<std::int64_t> contribution_until(std::string_view text) {
  constexpr std::string_view key = "\nuntil: ";
  const auto at = text.find(key);
  if (at == std::string_view::npos) return failure{"it says nothing of a contribution"};
  const auto from = at + key.size();
  return netem::wire::parse_utc(text.substr(from, text.find('\n', from) - from));
}

std::string common_text(const scenario& what) {
  auto common = what;
  common.world = "cluster";
  common.data.files.clear();
  return to_yaml(common);
}

std::string first_difference(const std::string& mine, const std::string& theirs) {
  const auto a = parse_document(mine), b = parse_document(theirs);
  if (!a.root || !b.root) return "it runs another scenario";
  const auto all = diff_options(a, b);
  if (all.empty()) return "it runs another scenario";
  const auto& d = all.front();
  return fmt::format("it runs another scenario: {} is {} there and {} here{}", d.path,
                     d.b.value_or("not set"), d.a.value_or("not set"),
                     all.size() > 1 ? fmt::format(" ({} differences in all)", all.size())
                                    : std::string{});
}

} // namespace shoal::scenarios
