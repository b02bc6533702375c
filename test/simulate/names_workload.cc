#include "simulate/names_workload.h"

#include <fmt/format.h>

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNumber = "number";  // attribute of a file: who it is

// Folders are at these only, so that no rename moves anything to where the model has no path.
constexpr std::size_t kFolderFirst = 2, kFolderEnd = 4;
bool may_be_folder(std::size_t path) { return path >= kFolderFirst && path < kFolderEnd; }

}  // namespace

void NamesWorkload::add_paths(Paths& paths) {
  for (const char* path : {"/a", "/b", "/d", "/e", "/d/a", "/d/b", "/e/a", "/e/b"}) paths.add(path);
}

void NamesWorkload::run(unsigned operations) {
  for (unsigned i = 0; i < operations && pause_up_to(dice_.chance(5) ? Duration(2s) : Duration(8ms)); ++i) one();
}

void NamesWorkload::one() {
  const std::size_t path = any_path();
  switch (dice_.below(12)) {
    case 0:
    case 1: return make_empty(path);
    case 2:
    case 3: return make_folder(dice_.from_to(kFolderFirst, kFolderEnd - 1));
    case 4:
    case 5:
    case 6: return rename_some(path);
    case 7:
    case 8: remove(path); return;
    case 9: return list(path);
    default: return see(path);
  }
}

void NamesWorkload::rename_some(std::size_t path) {
  std::size_t to = any_path();
  while (may_be_folder(path) && !may_be_folder(to)) to = any_path();
  rename(path, to, dice_.chance(30));
}

void NamesWorkload::make_empty(std::size_t path) {
  NameOp op = begin(Kind::kPublish, path);
  op.meaning = 100 + ++shared_.files_made;
  op.keep = dice_.chance(40);
  CreateOptions options;
  options.exclusive = op.keep;
  options.attributes[kNumber] = std::to_string(op.meaning);
  const auto done = client().create_empty(text(path), options);
  ended(std::move(op), done, "create " + text(path));
}

void NamesWorkload::make_folder(std::size_t path) {
  const NameOp op = begin(Kind::kMakeFolder, path);
  const auto done = client().make_folder(text(path));
  ended(op, done, "make folder " + text(path));
}

void NamesWorkload::see(std::size_t path) {
  NameOp op = begin(Kind::kSee, path);
  const auto entry = client().stat(text(path));
  const bool answered = entry || entry.error().code == Code::kNotFound || entry.error().code == Code::kNotDirectory;
  if (!answered) {
    failed("stat " + text(path), entry.error());
    return;
  }
  if (entry) op.meaning = entry->kind == EntryKind::kFolder ? kFolder : std::stoull(entry->attributes.at(kNumber));
  end(std::move(op), {});
}

void NamesWorkload::list(std::size_t folder) {
  NameOp op = begin(Kind::kList, folder);
  const auto page = client().list(text(folder));
  for (std::size_t i = 0; page && i < shared_.paths.size(); ++i) {
    for (const auto& entry : page->entries)
      if (text(i) == text(folder) + "/" + entry.name) op.meaning |= Meaning{1} << i;
  }
  ended(std::move(op), page ? Status() : Status(fail(page.error())), "list " + text(folder));
}

void NamesWorkload::see_all() {
  for (std::size_t path = 0; path < shared_.paths.size(); ++path) see(path);
}

}  // namespace pif::simulate
