#include "scenarios/observe/round_checks.hpp"

#include "actors/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace shoal::scenarios {

namespace {

std::string round_name(const swarm_round& what) {
  return fmt::format("epoch {}, group {}", what.epoch, what.group.hex());
}

bool is_empty(const actors::part_outcome& part) {
  return part.begin == part.end;
}

} // namespace

void check_same_bits(const swarm_round& what, invariant& into) {
  for (std::size_t i = 0; i < what.members.size(); ++i) {
    const round_member& who = what.members[i];
    if (!who.completed()) continue;
    into.check();
    if (!who.same_values) {
      into.violate(what.ended,
                   fmt::format("member {} (peer {:x}) holds other bits than the rest ({})", i,
                               who.peer, round_name(what)));
    }
  }
}

void check_denominator(const swarm_round& what, invariant& into) {
  if (!what.completed) return;
  const auto members = static_cast<std::uint32_t>(what.members.size());
  bool complete = true; // each part contains every member that has weight
  bool certain = true;  // no member is missing whose weight is unknown
  for (std::size_t p = 0; p < what.parts.size(); ++p) {
    const actors::part_outcome& part = what.parts[p];
    into.check();
    const auto wrong = [&](const std::string& text) {
      into.violate(what.ended, fmt::format("part {} {} ({})", p, text, round_name(what)));
    };
    std::uint64_t weight = 0;
    for (std::size_t i = 0; i < part.senders.size(); ++i) {
      const std::uint32_t sender = part.senders[i];
      if (i > 0 && part.senders[i - 1] >= sender) wrong("lists its senders out of order");
      if (sender >= members || !what.members[sender].contributed) {
        wrong(fmt::format("lists member {}, who contributed nothing", sender));
      } else {
        weight += what.members[sender].weight;
      }
    }
    if (weight != part.weight)
      wrong(fmt::format("was divided by {}, but its senders weigh {}", part.weight, weight));
    if (is_empty(part)) continue;
    for (std::uint32_t i = 0; i < members; ++i) {
      const round_member& who = what.members[i];
      if (std::binary_search(part.senders.begin(), part.senders.end(), i)) continue;
      if (!who.contributed)
        certain = false;
      else if (who.weight > 0)
        complete = false;
    }
  }
  for (std::size_t i = 0; i < what.members.size(); ++i) {
    const round_member& who = what.members[i];
    if (!who.completed()) continue;
    into.check();
    if (!who.same_parts) {
      into.violate(
          what.ended,
          fmt::format(
              "member {} (peer {:x}) has other parts, senders or weights than the rest ({})", i,
              who.peer, round_name(what)));
    } else if ((certain || !complete) && (who.outcome == actors::outcome::ok) != complete) {
      into.violate(what.ended, fmt::format("member {} (peer {:x}) calls the round {}, but {} ({})",
                                           i, who.peer, actors::to_string(who.outcome),
                                           complete ? "nothing is missing" : "weight is missing",
                                           round_name(what)));
    }
  }
}

namespace {

/// The part that an interval of the result belongs to.
struct part_extent {
  std::uint64_t begin = 0, end = 0;
};

part_extent part_of(const swarm_round& what, const actors::part_outcome& stretch) {
  part_extent out{stretch.begin, stretch.end};
  for (const actors::part_outcome& other : what.parts)
    if (other.part == stretch.part && !is_empty(other))
      out = {std::min(out.begin, other.begin), std::max(out.end, other.end)};
  return out;
}

bool has_attacker(const swarm_round& what, const actors::part_outcome& part,
                  const mass_options& options) {
  return options.honest &&
         std::any_of(part.senders.begin(), part.senders.end(), [&](std::uint32_t sender) {
           return sender < what.members.size() && !options.honest(what.members[sender].peer);
         });
}

/// Whether an attacker may have reduced the part. Member j reduces part j. If it is lost, any other
/// member may do so.
bool may_be_false(const swarm_round& what, std::uint32_t part, const mass_options& options) {
  if (!options.honest) return false;
  const auto attacks = [&](const round_member& who) {
    return who.known && !options.honest(who.peer);
  };
  if (part < what.members.size() && what.members[part].completed())
    return attacks(what.members[part]);
  return std::any_of(what.members.begin(), what.members.end(), attacks);
}

} // namespace

void check_mass_conserved(const swarm_round& what, const mass_options& options, invariant& into) {
  if (!what.completed) return;
  const auto wrong = [&](const std::string& text) {
    into.violate(what.ended, fmt::format("{} ({})", text, round_name(what)));
  };
  into.check();
  const std::uint64_t length = what.mean.size() / sizeof(float);
  std::uint64_t at = 0, work = 0;
  for (const actors::part_outcome& part : what.parts) {
    if (part.begin != at || part.end < part.begin)
      return wrong(
          fmt::format("a part [{}, {}) follows where {} was expected", part.begin, part.end, at));
    at = part.end;
    work += (part.end - part.begin) * part.senders.size();
  }
  if (at != length || what.mean.size() % sizeof(float) != 0)
    return wrong(
        fmt::format("the parts cover {} values, the mean has {} bytes", at, what.mean.size()));
  for (std::size_t i = 0; i < what.members.size(); ++i) {
    const round_member& who = what.members[i];
    if (who.contributed && who.values.size() != what.mean.size())
      return wrong(fmt::format("member {} contributed {} bytes to a mean of {}", i,
                               who.values.size(), what.mean.size()));
  }
  if (what.mean.empty() || what.mean.is_size_only()) return;

  const actors::aggregator_definition& how = *options.aggregator;
  const std::uint64_t stride = work / std::max<std::uint64_t>(options.budget, 1) + 1;
  for (const actors::part_outcome& part : what.parts) {
    if (is_empty(part) || has_attacker(what, part, options) ||
        may_be_false(what, part.part, options))
      continue;
    into.check();
    const bool whole = how.unit == actors::aggregation_unit::part;
    const auto [begin, end] = whole ? part_of(what, part) : part_extent{part.begin, part.end};
    actors::aggregate_claim claim;
    for (const std::uint32_t sender : part.senders) {
      if (sender >= what.members.size() || !what.members[sender].contributed)
        continue; // check_denominator() reports this
      const round_member& who = what.members[sender];
      if (who.values.is_size_only()) return;
      claim.inputs.push_back({static_cast<double>(who.weight),
                              who.values.floats().subspan(begin, end - begin), sender});
    }
    if (claim.inputs.empty()) {
      wrong(fmt::format("nobody's data is in part [{}, {})", part.begin, part.end));
      continue;
    }
    claim.inputs_begin = begin;
    claim.begin = part.begin;
    claim.result = what.mean.floats().subspan(part.begin, part.end - part.begin);
    claim.start = what.epoch % stride;
    claim.stride = stride;
    claim.allowed = options.allowed;
    claim.setting = options.setting;
    claim.setting.round_values = length;
    claim.setting.seed = what.group.high;
    if (const auto violation = how.verify(claim)) wrong(*violation);
  }
}

} // namespace shoal::scenarios
