#include "scenarios/observe/invariants.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "actors/dht/observations.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/training/observations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

mass_options mass_of(const invariant_options& options) {
  auto out = options.mass;
  if (options.honest)
    out.honest = [honest = options.honest, name_of = options.name_of](actors::peer_id peer) {
      return honest(name_of ? name_of(peer) : std::string{});
    };
  return out;
}

} // namespace

invariants::invariants(invariant_options options)
    : mass_(mass_of(options)), view_(options.view),
      samples_({options.lease_time, options.settle_time, options.weights_are_samples,
                options.computes_meanwhile, options.name_of, mass_.honest, options.takeovers,
                options.one_branch, options.commits_may_lie, options.view},
               at(invariant_rule::samples_counted)),
      progress_({options.max_epoch_difference, options.staleness_allowed, options.longest_cut,
                 options.one_branch, options.has_stages, options.donors_may_lie,
                 options.has_experts, options.name_of, options.view},
                at(invariant_rule::epoch_monotonic), at(invariant_rule::staleness),
                at(invariant_rule::state_lineage)) {}

void invariants::on_started(duration, actors::peer_id peer) {
  left_[peer].reset();
}

void invariants::on_left(duration time, actors::peer_id peer) {
  std::optional<duration>& when = left_[peer];
  if (!when) when = time;
  samples_.dropped(peer);
  progress_.left(time, peer);
}

void invariants::on_observation(duration time, actors::peer_id peer,
                                const actors::observation& what) {
  if (const auto* x = actors::get_if<actors::trained>(&what)) {
    samples_.computed(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::contributed>(&what)) {
    if (!x->first_of_two) // the second round says which samples are in the result
      samples_.contributed(time, peer, *x);
    progress_.contributed(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::round_ended>(&what)) {
    samples_.round_ended(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::phase_changed>(&what)) {
    if (x->phase == actors::peer_phase::gone) return on_left(time, peer);
    if (x->phase == actors::peer_phase::downloading) samples_.dropped(peer);
    // An attacker may stay behind, and nobody waits for it.
    if (!honest(peer)) progress_.not_judged(time, peer);
    progress_.phase_changed(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::stepped>(&what)) {
    progress_.stepped(time, peer, *x);
    samples_.stepped(peer, *x);
  } else if (const auto* x = actors::get_if<actors::batch_stepped>(&what)) {
    samples_.batch_stepped(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::step_made>(&what)) {
    samples_.step_made(*x);
  } else if (const auto* x = actors::get_if<actors::adopted>(&what)) {
    if (x->beside && !x->keeps)
      samples_.repeated_step(peer);
    else if (!x->beside)
      samples_.dropped(peer);
    progress_.adopted(time, peer, *x);
  } else if (const auto* x = actors::get_if<actors::samples_moved>(&what)) {
    samples_.moved(time, *x);
  } else if (const auto* x = actors::get_if<actors::samples_reported>(&what)) {
    samples_.reported(*x);
  } else if (const auto* x = actors::get_if<actors::records_given>(&what)) {
    invariant& live = at(invariant_rule::records_live);
    live.check();
    if (x->expires_utc_ns <= x->utc_ns)
      live.violate(time, fmt::format("the DHT node of peer {} gives a record that expired {} ago",
                                     peer, time_text(duration(x->utc_ns - x->expires_utc_ns))));
  } else if (const auto* x = actors::get_if<actors::misbehaved>(&what)) {
    // One host does not know which of the others are honest.
    if (x->culprit == 0 || view_ == observed_view::local || !honest(peer)) return;
    invariant& fair = at(invariant_rule::no_honest_accused);
    fair.check();
    if (honest(x->culprit))
      fair.violate(time, fmt::format("peer {} says of peer {}: {}", peer, x->culprit, x->why));
  } else if (const auto* x = actors::get_if<actors::member_banned>(&what)) {
    if (view_ == observed_view::local) return;
    // A ban of an honest member violates another rule.
    if (x->culprit != 0 && !honest(x->culprit)) progress_.not_judged(time, x->culprit);
    invariant& fair = at(invariant_rule::no_honest_accused);
    fair.check();
    if (x->culprit != 0 && honest(x->culprit))
      fair.violate(time, fmt::format("peer {} bans peer {}: {}", peer, x->culprit, x->why));
  }
}

void invariants::on_round(const swarm_round& what) {
  if (view_ == observed_view::local)
    return; // the host does not observe whether the other members' data was used
  check_same_bits(what, at(invariant_rule::same_bits));
  check_denominator(what, at(invariant_rule::denominator));
  check_mass_conserved(what, mass_, at(invariant_rule::mass_conserved));
  samples_.round_final(what);
}

void invariants::finish(duration time, const leak_facts& facts,
                        const std::optional<actors::state_id>& leading) {
  progress_.advance(time);
  samples_.finish(
      time,
      [this](actors::peer_id peer) -> std::optional<duration> {
        const auto found = left_.find(peer);
        if (found == left_.end()) return duration{}; // no observer ever heard of this peer
        return found->second;
      },
      leading);

  invariant& bypass = at(invariant_rule::no_bypass);
  bypass.check(std::max<std::uint64_t>(facts.messages, 1));
  if (facts.bypassed > 0)
    bypass.violate(time,
                   fmt::format("{} messages crossed hosts without the network", facts.bypassed),
                   facts.bypassed);

  if (view_ == observed_view::whole)
    at(invariant_rule::no_honest_accused).check(); // nobody was accused until the end

  invariant& requests = at(invariant_rule::requests_end);
  requests.check(std::max<std::uint64_t>(facts.requests, 1));
  if (facts.requests_open > 0)
    requests.violate(time, fmt::format("{} requests have no end", facts.requests_open),
                     facts.requests_open);

  invariant& leaks = at(invariant_rule::no_leaks);
  leaks.check(3);
  if (facts.actors_alive != facts.actors_expected) {
    leaks.violate(time, fmt::format("{} actors are alive, {} are expected", facts.actors_alive,
                                    facts.actors_expected));
  }
  if (facts.flows_of_dead_hosts > 0)
    leaks.violate(time, fmt::format("{} flows of dead hosts go on", facts.flows_of_dead_hosts),
                  facts.flows_of_dead_hosts);
  if (facts.actors_of_dead_hosts > 0)
    leaks.violate(time, fmt::format("{} actors outlive their host", facts.actors_of_dead_hosts),
                  facts.actors_of_dead_hosts);
}

} // namespace shoal::scenarios
