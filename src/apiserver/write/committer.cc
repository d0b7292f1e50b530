#include "apiserver/write/committer.h"

#include <charconv>
#include <utility>

namespace spillway::apiserver {

namespace {

api::Status store_failure(const Error& error) {
  if (error.code == ErrorCode::kTooManyRequests || error.code == ErrorCode::kServiceUnavailable ||
      error.code == ErrorCode::kTimeout) {
    return api::retry_status(error.code, error.message, 1);
  }
  return error;
}

}  // namespace

ObjectPtr Committer::object_of(const Resource& resource, const std::string& key, const store::Value& value,
                               store::Revision revision) {
  ObjectPtr cached = core_.cache.of(resource).find(key);
  if (cached && cached->revision == revision) return cached;
  // Overwritten meanwhile: what this write made of it.
  const Result<api::Json> document = api::parse_json(*value);
  if (!document) return cached;
  return make_object(key, *value, revision, extract(resource, *document));
}

void Committer::put(const Resource& resource, std::string key, api::Json document, store::Revision expected,
                    Checks checks, Done done) {
  Extract meta = extract(resource, document);
  const bool frees = meta.deleting;
  auto value = std::make_shared<const std::string>(to_stored_text(document));
  core_.cache.expect(value, std::move(meta), std::move(document), checks == Checks::kPassed);
  std::string store_key = resource.storage + key;
  write(resource, std::move(key), {std::move(store_key), std::move(value), expected, frees}, std::move(done));
}

void Committer::renew(const Resource& resource, const ObjectPtr& current, std::string bytes, Done done) {
  auto value = std::make_shared<const std::string>(std::move(bytes));
  core_.cache.expect_renewal(value, current);
  write(resource, current->key, {resource.storage + current->key, std::move(value), current->revision},
        std::move(done));
}

void Committer::write(const Resource& resource, std::string key, store::Write write, Done done) {
  store::Value value = write.value;
  core_.store.write(std::move(write), [this, &resource, key = std::move(key), value = std::move(value),
                                       done = std::move(done)](Result<store::WriteResult> result) mutable {
    core_.cache.forget(value);
    if (!result) return done(store_failure(result.error()));
    Commit commit{result->committed, nullptr};
    if (result->committed) {
      commit.object = object_of(resource, key, value, result->revision);
    } else if (result->current) {
      commit.object = object_of(resource, key, result->current->value, result->current->mod_revision);
    }
    done(std::move(commit));
  });
}

void Committer::erase(const Resource& resource, std::string key, api::Json last, store::Revision expected, Done done) {
  std::string store_key = resource.storage + key;
  const bool shows = !last.is_null();
  Extract meta;
  std::string last_text;
  if (shows) {
    meta = extract(resource, last);
    last_text = to_stored_text(last);
    core_.cache.expect_deletion(store_key, last_text, meta);
  }
  store::Write write{store_key, nullptr, expected};
  core_.store.write(std::move(write), [this, &resource, key = std::move(key), store_key = std::move(store_key), shows,
                                       last_text = std::move(last_text), meta = std::move(meta),
                                       done = std::move(done)](Result<store::WriteResult> result) mutable {
    if (shows) core_.cache.forget_deletion(store_key);
    if (!result) return done(store_failure(result.error()));
    Commit commit{result->committed, nullptr};
    if (result->committed && shows) {
      commit.object = make_object(std::move(key), last_text, result->revision, std::move(meta));
    } else if (result->current) {
      commit.object = object_of(resource, key, result->current->value, result->current->mod_revision);
    }
    done(std::move(commit));
  });
}

ObjectPtr Committer::imagine(const Resource& resource, const api::Json& document) {
  auto object = std::make_shared<StoredObject>();
  object->ns = document.string_at({"metadata", "namespace"});
  object->name = document.string_at({"metadata", "name"});
  object->key = object_key(object->ns, object->name);
  const std::string_view version = document.string_at({"metadata", "resourceVersion"});
  std::uint64_t number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  object->revision = store::Revision(number);
  object->text = std::make_shared<const std::string>(api::to_text(document));
  object->meta = extract(resource, document);
  return object;
}

}  // namespace spillway::apiserver
