// What the checks of a scenario share: saying what is wrong, and where it was given.
#pragma once

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/reader.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The hosts that a scenario may have.
inline constexpr std::uint64_t most_hosts = 4'000'000;

/// `path` as seen from here, if it is below.
std::string seen_from_here(const std::string& path);

/// Collects what is wrong with a scenario whose options were read.
class checking {
public:
  /// `folder`: where the scenario's relative paths begin.
  checking(const source_map& sources, std::vector<problem>& problems, std::string folder = ".")
      : sources_(sources), problems_(problems), folder_(std::move(folder)) {}

  void error(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes)});
  }
  void error_at_key(const std::string& path, std::string message,
                    std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.key_at(path), std::move(message), std::move(notes)});
  }
  void warn(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes), true});
  }
  /// The scenario has this option, and does not leave it to its default.
  bool given(const std::string& path) const { return sources_.given(path); }
  /// Nothing of these options failed to be read: neither they nor anything around them.
  bool sound(std::initializer_list<std::string> paths) const;
  /// The same, and nothing inside of them either.
  bool sound_inside(std::initializer_list<std::string> paths) const;
  /// `loss` and `bursts`, a jitter above the delay, ...
  void quality(const path_options& q, const std::string& path);
  const std::string& folder() const noexcept { return folder_; }

protected:
  const source_map& sources_;
  std::vector<problem>& problems_;

private:
  std::string folder_;
};

} // namespace shoal::scenarios
