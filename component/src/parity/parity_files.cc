#include <array>

#include <fmt/format.h>

#include "pif/component/parity.h"
#include "storage/files.h"

namespace pif::component {
namespace {

std::array<std::unique_ptr<File>*, 3> slots(ParityFiles& files) { return {&files.pages, &files.sums, &files.frames}; }

}  // namespace

Result<ParityFiles> open_parity(Storage& storage, const std::string& stem, OpenMode mode) {
  ParityFiles files;
  const auto slot = slots(files);
  for (std::size_t i = 0; i < slot.size(); ++i) {
    auto file = open_in_folder(storage, stem + kParitySuffixes[i], mode);
    if (!file && file.error().code == Code::kNotFound && mode != OpenMode::kCreate) continue;
    if (!file) return fail(std::move(file.error()));
    *slot[i] = std::move(*file);
  }
  return files;
}

Result<std::vector<Handle>> share(ParityFiles& files) {
  std::vector<Handle> handles;
  const auto add = [&](File& file) -> Status {
    PIF_TRY_VALUE(auto handle, file.share());
    handles.push_back(std::move(handle));
    return {};
  };
  if (files.pages != nullptr && files.sums != nullptr) {
    PIF_TRY(add(*files.pages));
    PIF_TRY(add(*files.sums));
  }
  if (files.frames != nullptr) PIF_TRY(add(*files.frames));
  return handles;
}

Result<ParityFiles> adopt_parity(Storage& storage, std::vector<Handle> handles) {
  if (handles.size() > 3)
    return fail(Code::kInvalid, fmt::format("{} descriptors came for the three files of parity", handles.size()));
  ParityFiles files;
  std::size_t next = 0;
  if (handles.size() >= 2) {
    PIF_TRY_VALUE(files.pages, storage.adopt(std::move(handles[next++])));
    PIF_TRY_VALUE(files.sums, storage.adopt(std::move(handles[next++])));
  }
  if (next < handles.size()) {
    PIF_TRY_VALUE(files.frames, storage.adopt(std::move(handles[next])));
  }
  return files;
}

Status sync(ParityFiles& files) {
  for (auto* file : slots(files))
    if (*file != nullptr) PIF_TRY((*file)->sync());
  return {};
}

Status check_written(ParityFiles& files) {
  for (auto* file : slots(files))
    if (*file != nullptr) PIF_TRY((*file)->check_written());
  return {};
}

}  // namespace pif::component
