// The windows of a text as a data shard streams them.
#pragma once

#include "actors/data/sample_source.hpp"
#include "kernels/learn/text.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace shoal::scenarios {

class text_source final : public actors::sample_source {
public:
  explicit text_source(std::shared_ptr<const learn::text_corpus> corpus)
      : corpus_(std::move(corpus)) {}
  std::uint32_t sample_bytes() const override {
    return static_cast<std::uint32_t>(corpus_->sample_bytes());
  }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    corpus_->sample(index, out);
  }

private:
  std::shared_ptr<const learn::text_corpus> corpus_;
};

} // namespace shoal::scenarios
