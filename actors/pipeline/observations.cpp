#include "actors/pipeline/observations.hpp"

#include <fmt/format.h>

namespace shoal::actors {

std::string gradient_counted::logged_fields() const {
  return fmt::format(R"("epoch":{},"stage":{},"hop":{},"trainer":"{:x}","number":{},"samples":{})",
                     epoch, stage, hop, pass.trainer, pass.number, samples);
}

std::string stage_stepped::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{},"state":"{}","group":"{}","own":{},"members":{})",
                     stage, epoch, after.hex(), group.hex(), own, members);
}

std::string stage_joined::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{},"bytes":{})", stage, epoch, bytes);
}

std::string stage_left::logged_fields() const {
  return fmt::format(R"("from":{},"to":{})", from, to);
}

std::string gradients_dropped::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{},"samples":{})", stage, epoch, samples);
}

std::string batch_trained::logged_fields() const {
  return fmt::format(R"("epoch":{},"samples":{},"loss_sum":{},"repeated":{},"dropped":{})", epoch,
                     samples, loss_sum, repeated, dropped);
}

} // namespace shoal::actors
