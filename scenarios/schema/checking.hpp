// What the checks of a scenario share: saying what is wrong, and where it was given.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/reader.hpp"

namespace shoal::scenarios {

/// `path` as seen from here, if it is below.
std::string seen_from_here(const std::string& path);

class checking {
 protected:
  checking(const source_map& sources, std::vector<problem>& problems) : sources_(sources), problems_(problems) {}

  void error(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes)});
  }
  void error_at_key(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.key_at(path), std::move(message), std::move(notes)});
  }
  void warn(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes), true});
  }
  bool sound(std::initializer_list<std::string> paths) const;
  /// `loss` and `bursts`, a jitter above the delay, ...
  void quality(const path_options& q, const std::string& path);

  const source_map& sources_;
  std::vector<problem>& problems_;
};

}  // namespace shoal::scenarios
