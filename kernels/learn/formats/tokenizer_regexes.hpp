// The regular expressions of tokenizer.json that normalizers know (normalizer_kind).
#pragma once

#include <string_view>

namespace shoal::learn {

inline constexpr std::string_view regex_space_runs = " {2,}";
inline constexpr std::string_view regex_bengali_colon = R"((?<=[\u0980-\u09ff]):)";

} // namespace shoal::learn
