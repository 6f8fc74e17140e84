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
  return fmt::format(R"("expert":"{}","backward":{},"requests":{},"rows":{},"staleness":{})",
                     to_text(which), backward, requests, rows, staleness);
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
  return fmt::format(
      R"("step":{},"loss":{:.6g},"calls":{},"lost":{},"unanswered":{},"look_ups":{},"seconds":{:.3f})",
      step, loss, calls, lost, unanswered, look_ups, to_seconds(time));
}

std::string expert_evaluated::logged_fields() const {
  return fmt::format(R"("step":{},"loss":{:.6g},"right":{},"rows":{})", step, loss, right, rows);
}

} // namespace shoal::actors
