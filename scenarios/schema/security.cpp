#include "scenarios/schema/security.hpp"

#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/round.hpp"
#include "actors/conduct/conducts.hpp"
#include "actors/trust/verdict.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/checking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace shoal::scenarios {

std::uint64_t clipped_batch_of(const scenario& what) {
  if (what.security.batch > 0) return what.security.batch;
  const auto batch = traits_of(what).target_batch;
  const auto hosts = std::max<std::uint64_t>(count_of(what), 1);
  return batch ? std::max<std::uint64_t>(*batch / hosts, 1) : 1;
}

namespace {

void apply_security(const scenario& what, actors::averaging_config& into) {
  const auto& o = what.security;
  if (o.kind == security_kind::none) return;
  const auto batch = clipped_batch_of(what);
  into.aggregator = actors::aggregators().find("centered_clip");
  into.aggregation = {{"radius", o.radius}, {"batch", static_cast<double>(batch)}};
  if (o.kind != security_kind::btard) return;
  actors::guard_options guard;
  guard.validators = static_cast<std::uint32_t>(o.validators);
  guard.radius = o.radius;
  guard.base_batch = batch;
  guard.most_distance = o.most_distance;
  guard.commit_time = o.commit_time;
  guard.duty_time = o.duty_time;
  guard.jurors = static_cast<std::uint32_t>(o.jurors);
  guard.probation = static_cast<std::uint32_t>(o.probation);
  into.guard = std::make_shared<const actors::guard_options>(guard);
}

} // namespace

void apply_aggregation(const scenario& what, actors::averaging_config& into) {
  into.aggregator = &what.averaging.aggregator.definition();
  into.aggregation = what.averaging.aggregator.chosen();
  apply_security(what, into);
  // An aggregator that judges pieces by distances sees more of a member in a large one.
  const bool judges = into.guard || into.aggregator != &actors::mean_aggregator();
  into.chunk_bytes = what.averaging.chunk_size ? what.averaging.chunk_size->bytes
                     : judges                  ? actors::largest_piece
                                               : 0;
}

std::uint64_t attackers_in(const scenario& what) {
  std::uint64_t out = 0;
  for (const auto& group : what.peers)
    if (actors::is_attack(group.conduct)) out += group.count;
  return out;
}

namespace {

class security_checker : checking {
public:
  security_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), s_(what), o_(what.security) {}

  void run() {
    if (!sound({"security", "security.kind"})) return;
    if (o_.kind == security_kind::none) return unused();
    if (given("averaging.aggregator"))
      error("averaging.aggregator",
            "security.kind chooses the aggregator: leave averaging.aggregator out, or set "
            "security.kind to none");
    if (o_.kind == security_kind::clip) return only_of_btard();
    method();
    codecs();
    members();
    time_to_validate();
  }

private:
  static constexpr const char* btard_only[] = {"validators", "most_distance", "commit_time",
                                               "duty_time",  "jurors",        "probation"};

  void unused() {
    for (const auto* key : {"radius", "batch"}) not_used(key, "clip and btard");
    only_of_btard();
  }
  void only_of_btard() {
    for (const auto* key : btard_only) not_used(key, "btard");
  }
  void not_used(const std::string& key, const char* of) {
    const auto path = "security." + key;
    if (given(path))
      warn(path,
           fmt::format("{} is of security.kind {}, which this scenario does not have", path, of));
  }

  void method() {
    if (!sound({"training.method"}) || traits_of(s_).recomputable) return;
    error("security.kind",
          fmt::format("btard computes contributions of other members again. Those of the method "
                      "'{}' with these options depend on more than a shared state and the samples",
                      s_.training.method.name()),
          {"btard takes training.method synchronous with training.overlap none; clip takes any"});
  }

  /// A validator has to get the target's bits from the state and the samples alone, and members
  /// have to get the reducer's result.
  void codecs() {
    const auto& a = s_.averaging;
    if (!sound(
            {"averaging.compression", "averaging.means_compression", "averaging.power_sgd_rank"}))
      return;
    const std::string why = "which only that member has: nobody can compute its contribution again";
    if (a.compression == kernels::codec::top_k)
      error("averaging.compression",
            "security.kind btard: top_k adds a residual to a contribution, " + why);
    if (a.power_sgd_rank > 0)
      error("averaging.power_sgd_rank",
            "security.kind btard: PowerSGD adds a residual to a contribution, " + why);
    const auto means = a.means_compression.value_or(
        a.compression == kernels::codec::top_k ? kernels::codec::none : a.compression);
    if (means != kernels::codec::none)
      error(a.means_compression ? "averaging.means_compression" : "averaging.compression",
            "security.kind btard: a codec changes the results that reducers send, so nobody can "
            "check that they are the robust means. Set averaging.means_compression to none");
  }

  void members() {
    if (!sound({"peers", "averaging.group_size", "averaging.min_group_size"})) return;
    const auto hosts = count_of(s_);
    if (hosts == 0) return;
    if (hosts < actors::fewest_members)
      return error("security.kind", fmt::format("btard needs {} hosts: {} cannot judge each other",
                                                actors::fewest_members, hosts));
    if (sound({"security.validators"}) && o_.validators >= hosts)
      error("security.validators",
            fmt::format("{} validators for {} hosts: set it below the number of hosts, or nobody "
                        "is left to compute new gradients",
                        o_.validators, hosts));
    const auto attackers = attackers_in(s_);
    const auto needed = actors::signatures_needed(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(hosts, 1u << 31)));
    if (attackers >= needed)
      error("security.kind",
            fmt::format("{} of {} hosts do not behave honestly, and {} signatures ban a member: "
                        "they can ban honest ones. btard bears at most {}",
                        attackers, hosts, needed, needed - 1));
    else if (attackers > 0 && sound({"security.validators"}) && o_.validators < hosts &&
             20 * attackers > 3 * (hosts - o_.validators))
      warn("security.kind",
           fmt::format("{} of {} hosts do not behave honestly. The paper proves convergence for at "
                       "most 15 % of the hosts that are no validators: until the bans, the loss "
                       "may stay higher",
                       attackers, hosts));
    if (s_.averaging.min_group_size < actors::fewest_members && hosts > actors::fewest_members)
      warn("security.kind", fmt::format("groups of fewer than {} members cannot ban anybody: raise "
                                        "averaging.min_group_size",
                                        actors::fewest_members));
  }

  /// A validator computes the target's contribution. A slow device needs longer for that of a fast
  /// one than the fast one did.
  void time_to_validate() {
    if (!sound({"security.duty_time", "training.method", "peers", "devices"}) ||
        !sound_inside({"peers", "devices", "training"}))
      return;
    const auto batch = traits_of(s_).target_batch;
    double all = 0, fastest = 0;
    const peer_group* slowest = nullptr;
    const auto speed_of = [this](const peer_group& group) {
      const auto found = s_.devices.find(group.device);
      return found == s_.devices.end() ? 0 : found->second.samples_per_second;
    };
    for (const peer_group& group : s_.peers) {
      const double speed = speed_of(group);
      if (speed <= 0 || group.count == 0) continue;
      all += speed * static_cast<double>(group.count);
      fastest = std::max(fastest, speed);
      if (slowest == nullptr || speed < speed_of(*slowest)) slowest = &group;
    }
    if (!batch || slowest == nullptr) return;
    const double seconds = static_cast<double>(*batch) * fastest / all / speed_of(*slowest);
    if (from_seconds(seconds) > o_.duty_time)
      warn(given("security.duty_time") ? "security.duty_time" : "security.kind",
           fmt::format("a host of '{}' needs {} to compute the largest contribution again, and "
                       "security.duty_time is {}: it will miss its duties and sit out",
                       slowest->name, to_string(from_seconds(std::ceil(seconds))),
                       to_string(o_.duty_time)));
  }

  const scenario& s_;
  const security_options& o_;
};

} // namespace

void check_security(const scenario& what, const source_map& sources,
                    std::vector<problem>& problems) {
  security_checker(what, sources, problems).run();
}

} // namespace shoal::scenarios
