// The connections of a mount: each node belongs to one of them, so that calls for different nodes run at once. Thread-
// safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pif/client/client.h"

namespace pif::mount {

class Clients {
 public:
  Clients(ConnectOptions options, unsigned count);

  unsigned count() const { return static_cast<unsigned>(all_.size()); }
  // Now, so that who mounts hears of what is wrong. Errors: those of Client::connect().
  [[nodiscard]] Status connect_first();

  // A client that nobody else uses meanwhile.
  class Use {
   public:
    Client& operator*() const { return *client_; }
    Client* operator->() const { return client_; }

   private:
    friend class Clients;
    Use(std::unique_lock<std::mutex> lock, Client& client, std::function<bool()>& wants_to_stop)
        : lock_(std::move(lock)), client_(&client), wants_to_stop_(&wants_to_stop) {}

   public:
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (lock_.owns_lock()) *wants_to_stop_ = nullptr;
    }

   private:
    std::unique_lock<std::mutex> lock_;
    Client* client_;
    std::function<bool()>* wants_to_stop_;
  };
  // Waits for its turn. wants_to_stop: asked while calls of it wait (Client::on_wait). Errors: of connecting.
  [[nodiscard]] Result<Use> use(unsigned number, std::function<bool()> wants_to_stop = nullptr);

 private:
  struct One {
    std::mutex mutex;  // guards the rest
    std::optional<Client> client;
    std::function<bool()> wants_to_stop;
  };
  Status connect(One& one);

  const ConnectOptions options_;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace pif::mount
