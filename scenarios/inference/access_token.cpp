#include "scenarios/inference/completions_server.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace shoal::scenarios {

result<std::string> read_access_token(const std::string& file) {
  constexpr std::size_t least = 16, most = 512;
  struct stat about {};
  std::ifstream in(file, std::ios::binary);
  if (!in || stat(file.c_str(), &about) != 0)
    return failure{fmt::format("cannot read the token in '{}'", file)};
  if (S_ISREG(about.st_mode) && (about.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return failure{fmt::format("others may read the token in '{}': run chmod 600 on it", file)};
  std::string out;
  for (char c = 0; out.size() <= most + 2 && in.get(c);) out += c;
  while (out.ends_with('\n') || out.ends_with('\r')) out.pop_back();
  const bool good = std::all_of(out.begin(), out.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!good || out.size() < least || out.size() > most)
    return failure{fmt::format("the token in '{}' has to be {} to {} characters of ASCII without "
                               "spaces",
                               file, least, most)};
  return out;
}

} // namespace shoal::scenarios
