#include <array>

#include <fmt/format.h>

#include "pif/component/component.h"
#include "pif/component/names.h"
#include "storage/files.h"

namespace pif::component {
namespace {

constexpr std::array<const char*, 4> kSuffixes = {".dat", ".sum", ".idx", ".isum"};

std::size_t file_count(const Format& format) { return format.is_fixed() ? 2 : 4; }

std::array<std::unique_ptr<File>*, 4> slots(Files& files) {
  return {&files.data, &files.sums, &files.index, &files.index_sums};
}

}  // namespace

Result<std::unique_ptr<File>> open_in_folder(Storage& storage, const std::string& path, OpenMode mode) {
  auto file = storage.open(path, mode);
  if (file || mode != OpenMode::kCreate || file.error().code != Code::kNotFound) return file;
  const std::string folder = path.substr(0, path.rfind('/'));
  PIF_TRY(storage.make_folder(folder));
  if (auto synced = storage.sync_folder(folder.substr(0, folder.rfind('/'))); !synced) {
    (void)storage.remove_tree(folder);  // so that the next one does not take it for durable
    return fail(std::move(synced.error()));
  }
  return storage.open(path, mode);
}

std::string stem(const std::string& root, FileId file) {
  return fmt::format("{}/data/{:02x}/{:016x}", root, file.value & 0xff, file.value);
}

Result<Files> open_files(Storage& storage, const std::string& stem, const Format& format, OpenMode mode) {
  PIF_TRY(format.validate());
  Files files;
  const auto slot = slots(files);
  for (std::size_t i = 0; i < file_count(format); ++i) {
    PIF_TRY_VALUE(*slot[i], open_in_folder(storage, stem + kSuffixes[i], mode));
  }
  return files;
}

Result<std::vector<Handle>> share(Files& files) {
  std::vector<Handle> handles;
  for (auto* file : slots(files)) {
    if (*file == nullptr) break;
    PIF_TRY_VALUE(auto handle, (*file)->share());
    handles.push_back(std::move(handle));
  }
  return handles;
}

Result<Files> adopt(Storage& storage, const Format& format, std::vector<Handle> handles) {
  PIF_TRY(format.validate());
  if (handles.size() != file_count(format))
    return fail(Code::kInvalid,
                fmt::format("{} descriptors came for a component of {} files", handles.size(), file_count(format)));
  Files files;
  const auto slot = slots(files);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    PIF_TRY_VALUE(*slot[i], storage.adopt(std::move(handles[i])));
  }
  return files;
}

std::vector<std::string> needed_names(const std::string& stem, const Format& format) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < file_count(format); ++i) out.push_back(stem + kSuffixes[i]);
  return out;
}

std::vector<std::string> possible_names(const std::string& stem) {
  std::vector<std::string> out;
  for (const char* suffix : kSuffixes) out.push_back(stem + suffix);
  for (const char* suffix : kParitySuffixes) out.push_back(stem + suffix);
  return out;
}

Status remove_files(Storage& storage, const std::string& stem) {
  for (const std::string& name : possible_names(stem)) PIF_TRY(storage.remove(name));
  return {};
}

Result<StoredBytes> stored_bytes(Storage& storage, const std::string& stem) {
  StoredBytes out;
  for (const char* suffix : kSuffixes) {
    PIF_TRY_VALUE(const auto bytes, storage.stored_bytes(stem + suffix));
    if (!bytes && suffix == kSuffixes.front()) return out;  // who has any of its files has .dat
    out.rows += bytes.value_or(0);
  }
  for (const char* suffix : kParitySuffixes) {
    PIF_TRY_VALUE(const auto bytes, storage.stored_bytes(stem + suffix));
    out.parity += bytes.value_or(0);
  }
  return out;
}

Status sync(Files& files) {
  for (auto* file : slots(files))
    if (*file != nullptr) PIF_TRY((*file)->sync());
  return {};
}

Status check_written(Files& files) {
  for (auto* file : slots(files))
    if (*file != nullptr) PIF_TRY((*file)->check_written());
  return {};
}

}  // namespace pif::component
