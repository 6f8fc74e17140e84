#include "scenarios/plan/candidates.hpp"

#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/option_diff.hpp"
#include "scenarios/schema/override.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace shoal::scenarios {

namespace {

/// Collects the keys of a kind's options.
struct key_list {
  std::set<std::string> keys;
  template <class T>
  void field(const char* key, T&, const char*, const rule&) {
    keys.insert(key);
  }
};

/// The keys of `training` that belong to a method.
std::set<std::string> method_keys() {
  key_list all;
  for (const auto* kind : methods().kinds()) {
    auto options = kind->options;
    describe(all, options);
  }
  all.keys.insert("method");
  return all.keys;
}

/// The entries of a section of the file without those keys, as ', key: value' each.
std::string entries_of(const document& of, std::string_view section,
                       const std::set<std::string>& without) {
  std::string out;
  if (!of.root || of.root->kind != node_kind::mapping) return out;
  const auto* found = of.root->find(section);
  if (found == nullptr || found->value->kind != node_kind::mapping) return out;
  for (const auto& item : found->value->entries)
    if (!without.contains(item.key))
      out += fmt::format(", {}: {}", item.key, on_one_line(*item.value));
  return out;
}

bool may_hold_a_stage(const peer_group& group) {
  return group.nat == netem::nat_class::open && group.role.definition().trains;
}

std::vector<std::string> all_of_role(const scenario& what, const char* role) {
  std::vector<std::string> out;
  for (const auto& group : what.peers)
    if (group.role.definition().trains && group.role.name() != role)
      out.push_back(fmt::format("peers.{}.role={}", group.name, role));
  return out;
}

/// Ways to make some hosts trainers of a pipeline, and the others hosts of its stages. A group is
/// cut in two where it is larger than the trainers that it gives.
std::vector<std::vector<std::string>> roles_of_pipeline(const scenario& what, const document& of) {
  std::vector<std::string> holders;
  bool has_trainers = false;
  for (const auto& group : what.peers)
    if (may_hold_a_stage(group))
      holders.push_back(group.name);
    else
      has_trainers = has_trainers || group.role.definition().trains;
  const auto hold = [](const std::string& group) {
    return fmt::format("peers.{}.role=stage", group);
  };
  std::vector<std::vector<std::string>> out;
  if (has_trainers) {
    out.emplace_back();
    for (const auto& group : holders) out.back().push_back(hold(group));
  }
  const auto* peers =
      of.root && of.root->kind == node_kind::mapping ? of.root->find("peers") : nullptr;
  for (const auto& giver : what.peers) {
    if (!may_hold_a_stage(giver)) continue;
    for (const std::uint64_t trainers : {1, 2, 4, 8, 16}) {
      const bool whole = giver.count <= trainers;
      if (whole && holders.size() < 2) break;
      std::vector<std::string> sets;
      for (const auto& group : holders)
        if (!whole || group != giver.name) sets.push_back(hold(group));
      if (!whole) {
        const auto* body = peers != nullptr && peers->value->kind == node_kind::mapping
                               ? peers->value->find(giver.name)
                               : nullptr;
        if (body == nullptr || body->value->kind != node_kind::mapping || !giver.names.empty())
          break;
        std::string driver = fmt::format("count: {}", trainers);
        for (const auto& item : body->value->entries)
          if (item.key != "count" && item.key != "role")
            driver += fmt::format(", {}: {}", item.key, on_one_line(*item.value));
        sets.push_back(fmt::format("peers.{}.count={}", giver.name, giver.count - trainers));
        sets.push_back(fmt::format("peers.{}-driver={{{}}}", giver.name, driver));
      }
      out.push_back(std::move(sets));
      if (whole) break;
    }
  }
  if (out.empty()) out.push_back(all_of_role(what, "stage"));
  return out;
}

} // namespace

std::vector<plan_candidate> plan_candidates(const scenario& what, const std::string& file,
                                            const std::vector<std::string>& sets) {
  std::ifstream in(file, std::ios::binary);
  auto of = parse_document(std::string{std::istreambuf_iterator<char>(in), {}});
  apply_sets(of, sets);
  const auto common = entries_of(of, "training", method_keys());
  const auto averaging = entries_of(of, "averaging", {"grid"});
  const bool has_stages = traits_of(what).has_stages;
  std::vector<plan_candidate> out;
  for (const auto* kind : methods().kinds()) {
    const auto& method = *methods().find(kind->name);
    if (!method.speed || !method.variants) continue;
    const bool own = method.name == what.training.method.name();
    auto like = what;
    if (!own) like.training.method = method_choice(method);
    const bool wants_stages = traits_of(like).has_stages;
    for (const auto& variant : method.variants(what)) {
      plan_candidate one{method.name, variant.name, {{}}, {}};
      std::string keys;
      for (const auto& [key, value] : variant.training) {
        if (own) one.sets.push_back(fmt::format("training.{}={}", key, value));
        keys += fmt::format(", {}: {}", key, value);
      }
      if (!own)
        one.sets.push_back(fmt::format("training={{method: {}{}{}}}", method.name, keys, common));
      // A grid has no place in other methods.
      if (!what.averaging.grid.empty() && !traits_of(like).uses_grid)
        one.sets.push_back(
            fmt::format("averaging={{{}}}", averaging.empty() ? averaging : averaging.substr(2)));
      for (const auto& [key, value] : variant.averaging)
        one.sets.push_back(fmt::format("averaging.{}={}", key, value));
      if (wants_stages && !has_stages)
        one.roles = roles_of_pipeline(what, of);
      else if (!wants_stages && has_stages)
        one.roles = {all_of_role(what, "trainer")};
      out.push_back(std::move(one));
    }
  }
  return out;
}

} // namespace shoal::scenarios
