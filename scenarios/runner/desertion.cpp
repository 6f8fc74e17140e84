#include "scenarios/runner/desertion.hpp"

namespace shoal::scenarios {

void desertion::linked(const std::string& host) {
  here_.insert(host);
  since_.reset();
}

bool desertion::left(const std::string& host, duration now) {
  said_goodbye_.insert(host);
  return gone(host, now);
}

bool desertion::lost(const std::string& host, duration now) {
  return said_goodbye_.contains(host) && gone(host, now);
}

bool desertion::gone(const std::string& host, duration now) {
  if (here_.erase(host) == 0 || !here_.empty()) return false;
  since_ = now;
  return true;
}

} // namespace shoal::scenarios
