#include "scenarios/runner/operator_answers.hpp"

namespace shoal::scenarios {

std::vector<node_report::neighbour>
neighbours_of(const std::vector<netem::wire::connected_peer>& links) {
  std::vector<node_report::neighbour> out;
  for (const auto& other : links) {
    auto& here = out.emplace_back();
    here.name = other.name;
    here.address = other.address;
    here.relay = other.relay;
    if (other.round_trip > duration{}) here.round_trip_seconds = to_seconds(other.round_trip);
    here.sends_bits_per_second = other.sends;
    here.receives_bits_per_second = other.receives;
  }
  return out;
}

netem::wire::control_answer answer_to(const netem::wire::control_client& who,
                                      const std::string& question, const operated_process& here) {
  if (question == "status") return {true, to_json(here.report())};
  if (question != "drain") return {false, "it does not know this question"};
  const auto say = [&](const std::string& line) {
    if (here.say) here.say(line);
  };
  const auto whose = who.name.empty() ? std::string("somebody") : who.name;
  if (!who.operates) {
    say(whose + " told it to leave, and is no operator");
    return {false, whose + " is no operator: 'shoal keys admit NAME --operator' makes one"};
  }
  if (here.leave()) say(whose + " told it to leave");
  return {true, here.name};
}

} // namespace shoal::scenarios
