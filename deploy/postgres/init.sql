-- Run once by the PostgreSQL image: each service owns a database of its own.
CREATE DATABASE auth;
CREATE DATABASE billing;
