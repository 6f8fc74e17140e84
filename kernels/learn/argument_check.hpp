// The checks of arguments that the models in pieces share (layered_model.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/tokens.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace shoal::learn {

/// Collects the first error of the arguments.
class argument_check {
public:
  argument_check& size(const char* what, std::size_t found, std::size_t needed) {
    if (found != needed)
      wrong("the " + std::string(what) + " has " + std::to_string(found) + " values; it needs " +
            std::to_string(needed));
    return *this;
  }

  argument_check& range(const char* what, std::int64_t found, std::int64_t most) {
    if (found < 1 || found > most)
      wrong(std::string(what) + " is " + std::to_string(found) + "; it must be from 1 to " +
            std::to_string(most));
    return *this;
  }

  argument_check& layers(layer_range block, std::int64_t layers) {
    if (block.first < 0 || block.first >= block.last || block.last > layers)
      wrong("the model has no layers [" + std::to_string(block.first) + ", " +
            std::to_string(block.last) + "): it has " + std::to_string(layers));
    return *this;
  }

  argument_check& tokens(std::span<const token_id> ids, std::int64_t vocabulary) {
    const auto unknown = std::find_if(ids.begin(), ids.end(),
                                      [&](token_id id) { return id < 0 || id >= vocabulary; });
    if (unknown != ids.end())
      wrong("token " + std::to_string(unknown - ids.begin()) + " is " + std::to_string(*unknown) +
            "; the vocabulary has " + std::to_string(vocabulary));
    return *this;
  }

  argument_check& that(bool holds, const char* otherwise) {
    if (!holds) wrong(otherwise);
    return *this;
  }

  bool ok() const { return why_.empty(); }
  failure why() const { return failure{"layers: " + why_}; }

private:
  void wrong(std::string what) {
    if (why_.empty()) why_ = std::move(what);
  }

  std::string why_;
};

} // namespace shoal::learn
