// Makes components durable before their seals are answered. Small ones that wait at the same time are synced together:
// from a certain number on by one sync of the whole local file system, which costs as much as a few syncs of single
// files. A large one is synced by itself, so that nobody waits for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "context/lfs_context.h"

namespace pif::lfs {

class SealSync {
 public:
  using Done = std::function<void(const Status&)>;  // on the loop's thread

  explicit SealSync(LfsContext& context) : context_(context) {}

  // The component is at kSealing, with open files, and nobody writes it. Syncing begins at once, or with the next
  // batch.
  void add(const ComponentPtr& component, Done done);
  // The same for its parity, of which so many bytes are new; is_new: and for the component's own files.
  void add_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes,
                  bool is_new, Done done);
  // Both files of one of many components that come back at the same time; parity may be null. So many bytes are new.
  // Nobody waits for this one alone, so that larger ones, too, are synced with others.
  void add_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                    std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes, Done done);
  // Each waits until they are durable, or why not. Called by a fiber.
  [[nodiscard]] Status sync(const ComponentPtr& component);
  [[nodiscard]] Status sync_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity,
                                   std::uint64_t bytes, bool is_new);
  [[nodiscard]] Status sync_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                                     std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes);
  // Once per turn: what has waited begins, unless enough is under way.
  void advance();

 private:
  struct Item {
    std::shared_ptr<component::Files> files;  // either may be null
    std::shared_ptr<component::ParityFiles> parity;
    std::string folder;
    Done done;
    Status result;

    [[nodiscard]] Status sync() const;
    [[nodiscard]] Status check_written() const;
  };
  void add(Item item, std::uint64_t bytes);
  struct Batch {
    std::vector<Item> items;
    Time begun{};
    bool is_counted = false;      // in under_way_: not one that is synced by itself
    bool is_all = false;          // by one sync of all
    bool is_unsupported = false;  // which cannot be had here
  };
  bool may_begin() const;
  void submit(std::vector<Item> items, bool is_counted);
  void finish(Batch& batch);
  // Away from the loop.
  static void sync(component::Storage& storage, const std::string& root, Batch& batch);
  static void sync_each(component::Storage& storage, std::vector<Item>& items);

  LfsContext& context_;
  std::vector<Item> waiting_;
  unsigned under_way_ = 0;  // batches that are counted
  Time begun_{};            // the last one
  Time all_again_{};        // before that no sync of all: the last one took too long, for others write a lot
};

}  // namespace pif::lfs
