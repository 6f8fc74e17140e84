#include "scenarios/schema/checking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace shoal::scenarios {

std::string seen_from_here(const std::string& path) {
  std::error_code error;
  const std::string near = std::filesystem::proximate(path, error).string();
  return error || near.empty() || near.starts_with("..") ? path : near;
}

std::string no_such_file(const std::string& given, const std::string& folder) {
  if (given.starts_with('/') || given.starts_with("~/"))
    return fmt::format("no such file: '{}'", given);
  const auto near = seen_from_here(folder);
  return fmt::format("no such file: '{}' in {}, where the scenario is", given,
                     near == "." ? "the working directory" : "'" + near + "'");
}

bool checking::sound(std::initializer_list<std::string> paths) const {
  return std::all_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return sources_.sound(path); });
}

bool checking::sound_inside(std::initializer_list<std::string> paths) const {
  return sound(paths) && std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
           const auto inside = sources_.failed.lower_bound(path + ".");
           return inside != sources_.failed.end() && inside->starts_with(path + ".");
         });
}

void checking::quality(const path_options& q, const std::string& path) {
  if (sound({path + ".delay", path + ".jitter", path + ".distribution"}) &&
      q.distribution == netem::jitter_shape::uniform && q.jitter > q.delay)
    error(path + ".jitter", fmt::format("the jitter {} is larger than the delay {}",
                                        to_string(q.jitter), to_string(q.delay)));
  for (const char* key : {".distribution", ".correlation"})
    if (q.jitter == duration::zero() && sources_.given(path + key) &&
        sound({path + key, path + ".jitter"}))
      error_at_key(path + key, fmt::format("'{}' needs a 'jitter'", key + 1));
  if (q.loss > 0 && sources_.given(path + ".bursts") && sound({path + ".loss", path + ".bursts"}))
    error_at_key(path + ".bursts", "'loss' and 'bursts' both say how packets are lost");
}

} // namespace shoal::scenarios
