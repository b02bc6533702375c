#include <type_traits>
#include <utility>

#include "pif/component/forwarding_file.h"
#include "pif/lfs/disk_health.h"

namespace pif::lfs {
namespace {

template <typename T>
Status outcome_of(const Result<T>& result) {
  return result ? Status() : Status(fail(result.error()));
}
Status outcome_of(const Status& status) { return status; }

// A daemon that is refused something in its own root has a damaged disk; it is no matter of the asker's rights.
template <typename T>
Result<T> of_disk(Result<T> result) {
  if (!result && result.error().code == Code::kPermission) result.error().code = Code::kIo;
  return result;
}

// `call`, which touches this place, with word of it before and after.
template <typename Call>
std::invoke_result_t<Call> noted(DiskHealth& health, DiskCall kind, std::string_view path, std::uint64_t offset,
                                 const Call& call) {
  const std::uint64_t id = health.begin(kind, path);
  auto result = call();
  health.end(id, offset, outcome_of(result));
  return result;
}

class WatchedFile final : public component::ForwardingFile {
 public:
  WatchedFile(std::unique_ptr<component::File> file, std::string path, DiskHealth& health)
      : ForwardingFile(std::move(file)), path_(std::move(path)), health_(health) {}

  // These do not wait for a disk, but may find that it fails.
  Result<std::size_t> read_cached(std::uint64_t offset, std::span<std::byte> into) override {
    return seen(offset, inner()->read_cached(offset, into));
  }
  Result<std::uint64_t> size() override { return seen(0, inner()->size()); }
  Result<std::size_t> read(std::uint64_t offset, std::span<const component::Piece> pieces) override {
    return look(offset, [&] { return inner()->read(offset, pieces); });
  }
  Result<std::uint64_t> next_data(std::uint64_t offset) override {
    return look(offset, [&] { return inner()->next_data(offset); });
  }
  Status write(std::uint64_t offset, std::span<const component::ConstPiece> pieces) override {
    return change([&] { return inner()->write(offset, pieces); });
  }
  Status sync() override {
    return change([&] { return inner()->sync(); });
  }
  Status check_written() override {
    return change([&] { return inner()->check_written(); });
  }
  Status resize(std::uint64_t size) override {
    return change([&] { return inner()->resize(size); });
  }
  Status punch(std::uint64_t offset, std::uint64_t size) override {
    return change([&] { return inner()->punch(offset, size); });
  }
  Status clone_from(component::File& source) override {
    return change([&] { return ForwardingFile::clone_from(source); });
  }
  Status reserve(std::uint64_t size) override {
    return change([&] { return inner()->reserve(size); });
  }

 private:
  template <typename T>
  Result<T> seen(std::uint64_t offset, Result<T> result) {
    health_.note(DiskCall::kRead, path_, offset, outcome_of(result));
    return result;
  }
  template <typename Call>
  std::invoke_result_t<Call> look(std::uint64_t offset, const Call& call) {
    return noted(health_, DiskCall::kRead, path_, offset, call);
  }
  template <typename Call>
  std::invoke_result_t<Call> change(const Call& call) {
    return noted(health_, DiskCall::kChange, path_, 0, call);
  }

  const std::string path_;
  DiskHealth& health_;
};

class WatchedStorage final : public component::Storage {
 public:
  WatchedStorage(component::Storage& inner, DiskHealth& health) : inner_(inner), health_(health) {}

  Result<std::unique_ptr<component::File>> open(const std::string& path, component::OpenMode mode) override {
    const DiskCall kind = mode == component::OpenMode::kCreate ? DiskCall::kChange : DiskCall::kRead;
    auto opened = noted(health_, kind, path, 0, [&] { return inner_.open(path, mode); });
    return wrapped(of_disk(std::move(opened)), path);
  }
  // Of another LFS, and on its disk.
  Result<std::unique_ptr<component::File>> adopt(Handle handle) override { return inner_.adopt(std::move(handle)); }
  Result<Handle> make_nameless(const std::string& folder) override {
    return change(folder, [&] { return inner_.make_nameless(folder); });
  }
  Status remove(const std::string& path) override {
    return change(path, [&] { return inner_.remove(path); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    return change(to, [&] { return inner_.rename(from, to); });
  }
  Status make_folder(const std::string& path) override {
    return change(path, [&] { return inner_.make_folder(path); });
  }
  Status remove_tree(const std::string& path) override {
    return change(path, [&] { return inner_.remove_tree(path); });
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return noted(health_, DiskCall::kRead, path, 0, [&] { return inner_.list(path); });
  }
  Status sync_folder(const std::string& path) override {
    return change(path, [&] { return inner_.sync_folder(path); });
  }
  Status sync_all(const std::string& path) override {
    return change(path, [&] { return inner_.sync_all(path); });
  }
  Result<component::Space> space(const std::string& path) override {
    auto result = inner_.space(path);
    health_.note(DiskCall::kRead, path, 0, outcome_of(result));
    return result;
  }
  Status lock(const std::string& path) override { return inner_.lock(path); }
  Result<std::optional<std::uint64_t>> stored_bytes(const std::string& path) override {
    return inner_.stored_bytes(path);
  }

 private:
  template <typename Call>
  std::invoke_result_t<Call> change(const std::string& path, const Call& call) {
    return noted(health_, DiskCall::kChange, path, 0, call);
  }
  Result<std::unique_ptr<component::File>> wrapped(Result<std::unique_ptr<component::File>> opened, std::string path) {
    if (!opened) return opened;
    return std::make_unique<WatchedFile>(std::move(*opened), std::move(path), health_);
  }

  component::Storage& inner_;
  DiskHealth& health_;
};

}  // namespace

std::unique_ptr<component::Storage> watch(component::Storage& inner, DiskHealth& health) {
  return std::make_unique<WatchedStorage>(inner, health);
}

}  // namespace pif::lfs
