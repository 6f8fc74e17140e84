#include "scenarios/schema/check_robustness.hpp"

#include "actors/averaging/aggregator.hpp"
#include "actors/conduct/conducts.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

class robustness_checker : checking {
public:
  robustness_checker(const scenario& what, const source_map& sources,
                     std::vector<problem>& problems)
      : checking(sources, problems), s_(what) {}

  void run() {
    // Another kind of security chooses the aggregator.
    if (sound({"security", "security.kind"}) && s_.security.kind == security_kind::none)
      aggregator();
    for (const peer_group& group : s_.peers) attack(group);
    corpus();
    attack_of_shard();
  }

private:
  /// Hosts whose conduct changes the values of rounds.
  std::uint64_t attackers() const {
    std::uint64_t out = 0;
    for (const peer_group& group : s_.peers) {
      const auto* found = actors::conducts().find(group.conduct.kind);
      if (found != nullptr && found->changes_values) out += group.count;
    }
    return out;
  }

  void aggregator() {
    if (!sound({"averaging.aggregator", "averaging.aggregator.kind", "averaging.group_size",
                "peers"}) ||
        !sound_inside({"averaging.aggregator"}))
      return;
    for (const peer_group& group : s_.peers)
      if (!sound({"peers." + group.name, "peers." + group.name + ".count",
                  "peers." + group.name + ".conduct"}))
        return;
    const auto& chosen = s_.averaging.aggregator;
    const auto& definition = chosen.definition();
    const auto bad = attackers(), all = count_of(s_);
    if (!definition.bears) {
      if (bad > 0)
        warn(attacked_path(),
             fmt::format("{} of {} hosts attack, and the aggregator '{}' bears none: one of them "
                         "decides the result",
                         bad, all, definition.name));
      return;
    }
    const auto members = std::min(all, s_.averaging.group_size);
    if (members == 0) return;
    const auto bears = definition.bears(members, chosen.setting());
    if (members < bears.least_members) {
      const auto faulty = chosen.setting().count("faulty");
      error(given("averaging.aggregator.faulty") ? "averaging.aggregator.faulty"
                                                 : "averaging.aggregator",
            fmt::format("'{}' with faulty {} needs groups of at least {} members, and no group has "
                        "more than {}",
                        definition.name, faulty, bears.least_members, members),
            {"choose a lower 'faulty' or larger groups"});
    } else if (bad > bears.faulty) {
      warn(attacked_path(),
           fmt::format("{} of {} hosts attack, and the aggregator '{}' bears at most {} in a group "
                       "of {}",
                       bad, all, definition.name, bears.faulty, members));
    } else if (members < all && bad * members > bears.faulty * all) {
      warn(attacked_path(),
           fmt::format("a group of {} has {:.3g} attackers on average, and the "
                       "aggregator '{}' bears at most {}",
                       members, static_cast<double>(bad * members) / static_cast<double>(all),
                       definition.name, bears.faulty));
    }
  }

  /// The first group that attacks.
  std::string attacked_path() const {
    for (const peer_group& group : s_.peers) {
      const auto* found = actors::conducts().find(group.conduct.kind);
      if (found != nullptr && found->changes_values) return "peers." + group.name + ".conduct";
    }
    return "peers";
  }

  void attack(const peer_group& group) {
    const std::string path = "peers." + group.name + ".conduct";
    if (!sound({"peers." + group.name, path}) || !sound_inside({path})) return;
    const auto* found = actors::conducts().find(group.conduct.kind);
    if (found == nullptr) return;
    const auto where = given(path + ".kind") ? path + ".kind" : path;
    if (found->of_shards)
      error(where,
            fmt::format("'{}' is an attack of a data shard, and '{}' are peers", found->name,
                        group.name),
            {"write 'data.conduct' in place of it"});
    if (sound({"workload.kind"}) && found->changes_values) {
      const auto& work = s_.workload.definition();
      // Without numbers btard's members can still commit to something false, and be found out.
      const bool audited =
          !sound({"security", "security.kind"}) || s_.security.kind == security_kind::btard;
      if (!work.has_numbers && !audited)
        error(where, fmt::format("'{}' changes values, and the workload '{}' has sizes alone",
                                 found->name, work.name));
      else if (found->changes_labels && !work.has_labels)
        error(where, fmt::format("'{}' changes labels, and the samples of the workload '{}' have "
                                 "none",
                                 found->name, work.name));
    }
    if (group.conduct.knows == actors::attacker_knowledge::everybody && s_.world == "cluster")
      error(given(path + ".knows") ? path + ".knows" : path,
            "attackers know everybody's contributions only in simulations: use 'knows: colluders'");
  }

  void corpus() {
    const auto& data = s_.data;
    digest root;
    if (sound({"data.corpus_root"}) && !data.corpus_root.empty() &&
        !read_hex(data.corpus_root, root))
      error("data.corpus_root", "the root of a corpus has 64 hexadecimal digits",
            {"leave it out, and 'shoal check' prints it where the data files are"});
    if (!sound({"data.corpus_samples"})) return;
    if (data.corpus_samples == 0) {
      if (given("data.corpus_root"))
        error("data.corpus_root", "the root is of no use without 'data.corpus_samples'");
    } else if (sound({"workload.kind"}) && !s_.workload.definition().has_numbers) {
      error("data.corpus_samples",
            fmt::format("the samples of the workload '{}' have sizes alone, which nobody can prove",
                        s_.workload.name()));
    }
  }

  void attack_of_shard() {
    const std::string path = "data.conduct";
    if (!sound({path, "data.attackers", "data.replicas"}) || !sound_inside({path})) return;
    const auto& how = s_.data.conduct;
    const auto* found = actors::conducts().find(how.kind);
    if (found == nullptr || found->kind == actors::conduct_kind::honest) return;
    const auto where = given(path + ".kind") ? path + ".kind" : path;
    if (!found->of_shards) {
      std::string known;
      for (const auto& each : actors::conducts().all())
        if (each.of_shards) known += (known.empty() ? "'" : ", '") + each.name + "'";
      error(where, fmt::format("'{}' is no conduct of a data shard", found->name),
            {fmt::format("a data shard is honest, or attacks by one of: {}", known)});
    } else if (sound({"workload.kind"}) && !s_.workload.definition().has_numbers) {
      error(where, fmt::format("'{}' changes samples, and those of the workload '{}' have sizes "
                               "alone",
                               found->name, s_.workload.name()));
    } else if (s_.data.attackers > s_.data.replicas) {
      error(
          given("data.attackers") ? "data.attackers" : "data.replicas",
          fmt::format("{} replicas attack, and there are {}", s_.data.attackers, s_.data.replicas));
    } else if (sound({"data.corpus_samples"}) && s_.data.corpus_samples == 0) {
      warn(where, "nobody checks samples without 'data.corpus_samples': a false one spoils the "
                  "model, and may get an honest member banned");
    } else if (s_.data.attackers == s_.data.replicas) {
      warn(where, "each replica of the data shard attacks, so peers have no honest one to turn to");
    }
  }

  const scenario& s_;
};

} // namespace

void check_robustness(const scenario& what, const source_map& sources,
                      std::vector<problem>& problems) {
  robustness_checker(what, sources, problems).run();
}

} // namespace shoal::scenarios
