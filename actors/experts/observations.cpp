#include "actors/experts/observations.hpp"

#include <fmt/format.h>

namespace shoal::actors {

const char* to_string(expert_refusal why) noexcept {
  switch (why) {
  case expert_refusal::none:
    return "none";
  case expert_refusal::unknown_expert:
    return "unknown_expert";
  case expert_refusal::too_many:
    return "too_many";
  case expert_refusal::wrong_values:
    return "wrong_values";
  case expert_refusal::stale:
    return "stale";
  case expert_refusal::too_large:
    return "too_large";
  }
  return "unknown";
}

std::string expert_held::logged_fields() const {
  return fmt::format(R"("expert":"{}","steps":{},"revived":{})", to_text(which), steps, revived);
}

std::string expert_given_up::logged_fields() const {
  return fmt::format(R"("expert":"{}","steps":{})", to_text(which), steps);
}

std::string expert_batch_done::logged_fields() const {
  return fmt::format(
      R"("expert":"{}","backward":{},"requests":{},"rows":{},"staleness":{},"steps":{},"queued":{:.6f},"seconds":{:.6f})",
      to_text(which), backward, requests, rows, staleness, steps, to_seconds(queued),
      to_seconds(time));
}

std::string experts_copied::logged_fields() const {
  std::string names, steps;
  for (const auto& each : copies) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", to_text(each.which));
    steps += fmt::format("{}{}", steps.empty() ? "" : ",", each.steps);
  }
  return fmt::format(R"("experts":[{}],"steps":[{}])", names, steps);
}

const char* expert_call_lost::reason() const noexcept {
  return why == expert_refusal::none ? "no_answer" : to_string(why);
}

std::string expert_call_lost::logged_fields() const {
  return fmt::format(R"("expert":"{}","host":"{:x}","backward":{},"why":"{}")", to_text(which),
                     host, backward, reason());
}

std::string experts_followed::logged_fields() const {
  return fmt::format(R"("epoch":{},"experts":{},"copies":{})", epoch, experts, copies);
}

std::string model_gathered::logged_fields() const {
  return fmt::format(R"("epoch":{},"experts":{},"missing":{},"bytes":{},"seconds":{:.3f})", epoch,
                     experts, missing, bytes, to_seconds(time));
}

std::string expert_step::logged_fields() const {
  auto out = fmt::format(
      R"("step":{},"loss":{:.6g},"calls":{},"lost":{},"unanswered":{},"look_ups":{},"seconds":{:.3f},"look_up_seconds":{:.3f},"waiting_seconds":{:.3f})",
      step, loss, calls, lost, unanswered, look_ups, to_seconds(time), to_seconds(look_up_time),
      to_seconds(waiting_time));
  if (slowest)
    out += fmt::format(
        R"(,"slowest":"{}","slowest_backward":{},"slowest_began_ns":{},"slowest_seconds":{:.6f})",
        to_text(*slowest), slowest_backward, slowest_began.count(), to_seconds(slowest_time));
  return out;
}

std::string expert_evaluated::logged_fields() const {
  return fmt::format(R"("step":{},"loss":{:.6g},"right":{},"rows":{})", step, loss, right, rows);
}

} // namespace shoal::actors
