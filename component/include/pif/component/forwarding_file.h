// A file that is another one, but for what a class that derives from it does itself.
#pragma once

#include <memory>
#include <utility>

#include "pif/component/storage.h"

namespace pif::component {

class ForwardingFile : public File {
 public:
  // Each call below is the inner file's. clone_from() takes the inner one of a source that forwards, too.
  explicit ForwardingFile(std::shared_ptr<File> inner) : inner_(std::move(inner)) {}

  using File::read;
  using File::write;
  Result<std::size_t> read(std::uint64_t offset, std::span<const Piece> pieces) override {
    return inner_->read(offset, pieces);
  }
  Result<std::size_t> read_cached(std::uint64_t offset, std::span<std::byte> into) override {
    return inner_->read_cached(offset, into);
  }
  Status write(std::uint64_t offset, std::span<const ConstPiece> pieces) override {
    return inner_->write(offset, pieces);
  }
  Status sync() override { return inner_->sync(); }
  Status check_written() override { return inner_->check_written(); }
  Status resize(std::uint64_t size) override { return inner_->resize(size); }
  Status punch(std::uint64_t offset, std::uint64_t size) override { return inner_->punch(offset, size); }
  Result<std::uint64_t> next_data(std::uint64_t offset) override { return inner_->next_data(offset); }
  Result<std::uint64_t> size() override { return inner_->size(); }
  void start_writeback(std::uint64_t offset, std::uint64_t size) override { inner_->start_writeback(offset, size); }
  Status clone_from(File& source) override {
    auto* const other = dynamic_cast<ForwardingFile*>(&source);
    return inner_->clone_from(other != nullptr ? *other->inner_ : source);
  }
  Result<bool> has_writers() override { return inner_->has_writers(); }
  Result<Handle> share() override { return inner_->share(); }
  Status reserve(std::uint64_t size) override { return inner_->reserve(size); }

 protected:
  const std::shared_ptr<File>& inner() const { return inner_; }

 private:
  const std::shared_ptr<File> inner_;
};

}  // namespace pif::component
