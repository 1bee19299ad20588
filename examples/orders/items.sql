CREATE TABLE items (item TEXT PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(10, 2) NOT NULL);
INSERT INTO items VALUES ('pen', 'A pen', 2.50), ('ink', 'A bottle of ink', 5.00);
