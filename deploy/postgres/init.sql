-- Run once by the PostgreSQL image: each service owns a database of its own. Nobody is ever connected to template0, and a copy of a
-- database fails while somebody is.
CREATE DATABASE auth TEMPLATE template0;
CREATE DATABASE billing TEMPLATE template0;
