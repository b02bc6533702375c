#include "pif/server/server.h"

#include "context/server_context.h"
#include "load.h"
#include "loop.h"

namespace pif::server {

struct Server::Impl {
  Impl(Config config, World world) : core(std::move(config), world), loop(core) {}
  Core core;
  Loop loop;
};

Server::Server(Config config, World world) : impl_(std::make_unique<Impl>(std::move(config), world)) {}
Server::~Server() = default;

Status Server::open() { return load(impl_->core); }
Status Server::serve(const std::atomic<bool>& stop) { return impl_->loop.serve(stop); }

}  // namespace pif::server
