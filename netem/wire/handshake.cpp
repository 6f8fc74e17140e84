#include "netem/wire/handshake.hpp"

namespace shoal::netem::wire {

frame_step step_of(const link_phase& phase, frame_kind kind, std::size_t bytes) {
  if (phase.closed) return frame_step::drop;
  if (phase.up) return frame_step::handle;
  if (kind == frame_kind::refused) return frame_step::refused;
  if (kind == frame_kind::revocation_list && phase.dialled && !phase.list_came)
    return frame_step::list;
  if (kind == frame_kind::hello && bytes <= longest_hello && !phase.hello_came)
    return frame_step::hello;
  return frame_step::wrong;
}

verdict check_hello(const handshake_rules& rules, const hello& theirs,
                    const attested_name& attested, std::int64_t utc_ns) {
  if (attested.relayed && !attested.relay_agrees)
    return {refusal::borrowed_name, "the relay knows it by another name than " + theirs.name};
  if (rules.keys && theirs.name != attested.certificate_name)
    return {refusal::borrowed_name,
            "the certificate is " + attested.certificate_name + "'s, not " + theirs.name + "'s"};
  if (theirs.name == rules.name) {
    if (theirs.incarnation == rules.incarnation) return {refusal::ourselves, ""};
    return {refusal::name_taken, "there is a host with the name " + theirs.name};
  }
  const auto off = duration(theirs.utc_ns - utc_ns);
  if (off > rules.most_clock_difference || -off > rules.most_clock_difference)
    return {refusal::clock_off, "its clock is " + to_string(off > duration{} ? off : -off) +
                                    (off > duration{} ? " ahead of" : " behind") + " that of " +
                                    rules.name};
  if (theirs.scenario != rules.scenario) return {refusal::other_scenario, rules.scenario_text};
  return {};
}

} // namespace shoal::netem::wire
