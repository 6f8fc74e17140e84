// Common base of the checks of a scenario: reports of errors and warnings with their positions.
#pragma once

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/reader.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Largest number of hosts in a scenario.
inline constexpr std::uint64_t most_hosts = 4'000'000;

/// Returns `path` relative to the working directory if it is below this directory.
std::string seen_from_here(const std::string& path);

/// The error for a file that is not there. `given` is the path as the scenario has it, and `folder`
/// the folder where relative paths start.
std::string no_such_file(const std::string& given, const std::string& folder);

/// Collects errors and warnings about a scenario after the reader has filled it.
class checking {
public:
  /// The scenario's relative paths start at `folder`.
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
  /// True if the scenario file sets this option.
  bool given(const std::string& path) const { return sources_.given(path); }
  /// True if the reader accepted these options and the mappings around them.
  bool sound(std::initializer_list<std::string> paths) const;
  /// True if sound() holds, and the reader also accepted all options inside `paths`.
  bool sound_inside(std::initializer_list<std::string> paths) const;
  /// Checks a path's quality: `loss` together with `bursts`, a jitter above the delay, ...
  void quality(const path_options& q, const std::string& path);
  const std::string& folder() const noexcept { return folder_; }

protected:
  const source_map& sources_;
  std::vector<problem>& problems_;

private:
  std::string folder_;
};

} // namespace shoal::scenarios
